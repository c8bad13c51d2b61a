// Identity files, mutated: each is refused as one of another version, or keys are made with it.
#include <unistd.h>
#include <fstream>
#include <string>

#include "common/files.h"
#include "common/identity.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_change.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace jitc::common;
namespace fuzz = jitc::fuzz;

std::string check(const std::string& directory, const std::string& input) {
  const std::string path = directory + "/" + kIdentityFile;
  // A new file each time: cutting or replacing one makes some file systems write through to the disk.
  ::unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << input;
  const auto identity = read_identity(directory);
  if (!identity) {
    const Error& error = identity.error();
    return error.kind == ErrorKind::kVersionSkew && !error.message.empty() ? "" : "refused as " + to_line(error);
  }
  Request request;
  request.origin = "int f(void);\n";
  request.compiler = identity->compilers.empty() ? "clang" : identity->compilers.front().name;
  for (const char* wish : {"native", "common"}) {
    request.isa_wish = wish;
    const auto resolved = resolve(request, *identity);
    if (!resolved && (resolved.error().kind != ErrorKind::kRefused || resolved.error().message.empty()))
      return "refused without saying why: " + to_line(resolved.error());
  }
  const auto key = resolve(request, *identity);
  ::unlink(path.c_str());
  if (auto written = write_identity(directory, *identity); !written) return to_line(written.error());
  const auto again = read_identity(directory);
  if (!again) return "what was read and written is refused";
  const auto key_again = resolve(request, *again);
  if (key.has_value() != key_again.has_value() || (key && key->key != key_again->key))
    return "another key after reading and writing";
  return {};
}

}  // namespace

fuzz::Target fuzz::target() {
  static const jitc::testing::TemporaryDirectory directory;
  Identity identity;
  identity.version = build_version();
  identity.pid = 4711;
  identity.compilers = {{"clang", "", "clang 19"}, {"gcc", "/usr/bin/gcc", sha256("gcc").hex()}};
  identity.triple = "x86_64-pc-linux-gnu";
  identity.native_isa = "skylake +avx2";
  identity.store = "/home/user/.cache/jitc";
  identity.store_is_shared = true;
  identity.read_only_stores = {"/site"};
  identity.store_owners = {{"/site", 1002}};
  identity.include_roots = {{"/opt/include", sha256("root").hex()}};
  std::vector<std::string> corpus;
  for (const bool has_roots : {true, false}) {
    if (!has_roots) identity.include_roots.clear();
    if (!write_identity(directory.path(), identity)) return {};
    corpus.push_back(read_file(directory.path() + "/" + kIdentityFile).value_or(""));
  }
  return {
      .name = "identity_fuzz",
      .corpus = std::move(corpus),
      .words = fuzz::json_words({"1e300", "0.5", "18446744073709551615", "\"pid\": ", "\"name\": ", "\"digest\": \"\"",
                                 "\"identity\": \"\"", "\"compilers\": []", "\"path\": 3", "\"version\": \"2\""}),
      .check = [](const std::string& input) { return check(directory.path(), input); },
      .change = change_value};
}
