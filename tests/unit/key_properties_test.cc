// Properties of request digest and artifact key over random requests: each field counts, nothing else does, and no two
// requests meet by where one field ends and the next begins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "common/identity.h"
#include "common/request.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

constexpr std::uint64_t kSeed = 6;
constexpr int kRequests = 400;

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t end) { return random_() % end; }
  bool coin() { return below(2) == 0; }

  // Short, so that equal ones and empty ones come up; with bytes that lengths and types are written with.
  std::string text() {
    static constexpr std::string_view kBytes{"aab-Dtln\0\1\2\n\r\xff", 14};
    std::string text;
    for (std::size_t left = below(12); left > 0; --left) text += kBytes[below(kBytes.size())];
    return text;
  }
  std::string text_other_than(const std::string& value) {
    std::string other = text();
    return other == value ? other + "x" : other;
  }
  template <class T>
  T& one_of(std::vector<T>& list) {
    return list[below(list.size())];
  }

  Request request() {
    Request request;
    request.origin = text();
    for (std::size_t left = 1 + below(4); left > 0; --left) request.flags.push_back(text());
    request.compiler = text();
    request.abi_tag = text();
    request.share = text();
    request.cse = text();
    request.emitter_version = static_cast<std::uint32_t>(below(3));
    request.isa_wish = text();
    for (std::size_t left = 1 + below(3); left > 0; --left) request.headers.push_back({text(), text()});
    request.exact_flags = coin();
    return request;
  }

 private:
  std::mt19937_64 random_;
};

std::string unix_ends(std::string text) {
  for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos; ++at) text.erase(at, 1);
  return text;
}

// What a digest depends on. A new member of Request must be named here, and its change either in changes_that_count()
// or in NothingElseChangesIt.
auto keyed_fields(const Request& request) {
  [[maybe_unused]] const auto& [origin, flags, compiler, abi_tag, share, cse, emitter_version, isa_wish, headers,
                                exact_flags, code, isa_level, name, job, prefetch, no_cache, no_capsule, checked,
                                canary] = request;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& header : headers) texts.emplace_back(header.name, unix_ends(header.text));
  return std::tuple(unix_ends(origin), flags, compiler, abi_tag, share, cse, emitter_version, isa_wish,
                    std::move(texts), exact_flags);
}

struct Change {
  const char* what;
  std::function<void(Request&, Random&)> make;
};

const std::vector<Change>& changes_that_count() {
  static const std::vector<Change> changes{
      {"origin", [](Request& r, Random& any) { r.origin = any.text_other_than(r.origin) + "."; }},
      {"one flag",
       [](Request& r, Random& any) {
         std::string& flag = any.one_of(r.flags);
         flag = any.text_other_than(flag);
       }},
      {"a flag more",
       [](Request& r, Random& any) {
         r.flags.insert(r.flags.begin() + static_cast<std::ptrdiff_t>(any.below(r.flags.size() + 1)), any.text());
       }},
      {"a flag less",
       [](Request& r, Random& any) {
         r.flags.erase(r.flags.begin() + static_cast<std::ptrdiff_t>(any.below(r.flags.size())));
       }},
      {"compiler", [](Request& r, Random& any) { r.compiler = any.text_other_than(r.compiler); }},
      {"ABI tag", [](Request& r, Random& any) { r.abi_tag = any.text_other_than(r.abi_tag); }},
      {"share", [](Request& r, Random& any) { r.share = any.text_other_than(r.share); }},
      {"cse", [](Request& r, Random& any) { r.cse = any.text_other_than(r.cse); }},
      {"emitter", [](Request& r, Random& any) { r.emitter_version += 1U << any.below(32); }},
      {"isa", [](Request& r, Random& any) { r.isa_wish = any.text_other_than(r.isa_wish); }},
      {"a header's name",
       [](Request& r, Random& any) {
         std::string& name = any.one_of(r.headers).name;
         name = any.text_other_than(name);
       }},
      {"a header's text",
       [](Request& r, Random& any) {
         std::string& text = any.one_of(r.headers).text;
         text = any.text_other_than(text) + ".";
       }},
      {"a header more", [](Request& r, Random& any) { r.headers.push_back({any.text(), any.text()}); }},
      {"a header less", [](Request& r, Random&) { r.headers.pop_back(); }},
      {"exact flags", [](Request& r, Random&) { r.exact_flags = !r.exact_flags; }},
  };
  return changes;
}

TEST(RequestDigest, EachFieldsChangeChangesIt) {
  Random any(kSeed);
  for (int i = 0; i < kRequests; ++i) {
    const Request request = any.request();
    const Digest digest = request_digest(request);
    for (const auto& change : changes_that_count()) {
      Request changed = request;
      change.make(changed, any);
      if (keyed_fields(changed) == keyed_fields(request)) continue;  // "x.\r\n" and the like
      ASSERT_NE(request_digest(changed), digest) << change.what << ", request " << i << " of seed " << kSeed;
    }
  }
}

TEST(RequestDigest, NothingElseChangesIt) {
  Random any(kSeed + 1);
  for (int i = 0; i < kRequests; ++i) {
    Request request = any.request();
    const Digest digest = request_digest(request);
    request.code = any.text();
    request.isa_level = any.text();
    request.name = any.text();
    request.job = any.text();
    request.prefetch = any.coin();
    request.no_cache = any.coin();
    request.no_capsule = any.coin();
    request.checked = any.coin();
    if (any.coin()) request.canary = Canary{.table = any.text()};
    ASSERT_EQ(request_digest(request), digest) << "request " << i << " of seed " << kSeed + 1;
  }
}

TEST(RequestDigest, OrderOfFlagsAndHeadersCounts) {
  Random any(kSeed + 2);
  std::mt19937_64 order(kSeed + 2);
  for (int i = 0; i < kRequests; ++i) {
    const Request request = any.request();
    Request shuffled = request;
    std::ranges::shuffle(shuffled.flags, order);
    if (any.coin()) std::ranges::shuffle(shuffled.headers, order);
    ASSERT_EQ(request_digest(shuffled) == request_digest(request), keyed_fields(shuffled) == keyed_fields(request))
        << i;
  }
}

TEST(RequestDigest, LineEndsOfTextsDoNotCountAndOfNothingElse) {
  Random any(kSeed + 3);
  const auto with_some_crlf = [&any](const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '\n' && any.coin() ? "\r\n" : std::string(1, c);
    return result;
  };
  for (int i = 0; i < kRequests; ++i) {
    Request request = any.request();
    request.origin = unix_ends(request.origin) + "\n";
    for (auto& header : request.headers) header.text = unix_ends(header.text) + "\n";
    const Digest digest = request_digest(request);
    Request dos = request;
    dos.origin = with_some_crlf(request.origin);
    for (auto& header : dos.headers) header.text = with_some_crlf(header.text);
    ASSERT_EQ(keyed_fields(dos) == keyed_fields(request), request_digest(dos) == digest) << i;
    dos = request;
    dos.abi_tag += "\n";
    Request lone = dos;
    lone.abi_tag.back() = '\r';
    ASSERT_NE(request_digest(dos), request_digest(lone));
    lone.abi_tag += "\n";
    ASSERT_NE(request_digest(dos), request_digest(lone)) << "only texts are normalised";
  }
}

// The bytes as they are hashed, so that a text can look like the end of its field and the beginning of others.
std::string as_field(char type, std::string_view name, std::string_view value) {
  const auto length = [](std::size_t n) {
    std::string bytes;
    for (int i = 0; i < 8; ++i, n >>= 8) bytes += static_cast<char>(n);
    return bytes;
  };
  return type + length(name.size()) + std::string(name) + length(value.size()) + std::string(value);
}

// One text cut into all fields and list elements at random.
Request cut(const std::string& text, Random& any) {
  std::vector<std::size_t> borders{0, text.size()};
  const std::size_t flags = any.below(4), headers = any.below(3);
  const std::size_t parts = 6 + flags + 2 * headers;
  while (borders.size() <= parts) borders.push_back(any.below(text.size() + 1));
  std::ranges::sort(borders);
  std::size_t next = 0;
  const auto part = [&] {
    const std::size_t begin = borders[next];
    return text.substr(begin, borders[++next] - begin);
  };
  Request request;
  request.origin = part();
  for (std::size_t i = 0; i < flags; ++i) request.flags.push_back(part());
  request.compiler = part();
  request.abi_tag = part();
  request.share = part();
  request.cse = part();
  request.isa_wish = part();
  for (std::size_t i = 0; i < headers; ++i) {
    std::string name = part();
    request.headers.push_back({std::move(name), part()});
  }
  return request;
}

TEST(RequestDigest, UnlikeCutsOfOneTextHaveUnlikeDigests) {
  Random any(kSeed + 4);
  const std::string count_of_two{2, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<std::string> texts{
      "-DA-DB-DC",
      std::string(20, 'a'),
      std::string(20, '\0'),
      as_field('t', "flag", "-DA") + as_field('t', "flag", "-DB") + as_field('t', "compiler", "clang"),
      "x" + as_field('l', "flags", count_of_two) + as_field('t', "flag", "-DA") + as_field('t', "flag", "-DB"),
      as_field('t', "name", "a.h") + as_field('t', "text", "int a;"),
  };
  for (const auto& text : texts) {
    std::map<decltype(keyed_fields(Request{})), Digest> seen;
    std::map<Digest, int> digests;
    for (int i = 0; i < 3000; ++i) {
      const Request request = cut(text, any);
      const Digest digest = request_digest(request);
      const auto [it, is_new] = seen.emplace(keyed_fields(request), digest);
      ASSERT_EQ(it->second, digest);
      ASSERT_EQ(digests[digest] += is_new ? 1 : 0, 1)
          << "two requests, one digest; cut " << i << ", seed " << kSeed + 4;
    }
    EXPECT_GT(seen.size(), 100U);
  }
}

// What stands between two values is in one of them instead, and the border is moved over it: whole, and what would
// stand there if a length, a name or a type were left out.
TEST(RequestDigest, ATextThatLooksLikeABorderIsNone) {
  const auto both_ways = [](const std::string& border, auto set) {
    Request left, right;
    set(left, "X", "Y" + border + "Z");
    set(right, "X" + border + "Y", "Z");
    return request_digest(left) == request_digest(right);
  };
  const auto borders = [](const std::string& name, std::size_t value_size) {
    const std::string whole = as_field('t', name, std::string(value_size, '.')).substr(0, 1 + 8 + name.size() + 8);
    return std::vector<std::string>{
        whole, whole.substr(0, whole.size() - 8), whole.substr(1), whole.substr(9), whole.substr(9, name.size()), "t",
        "",    whole.substr(whole.size() - 8)};
  };
  for (std::size_t size = 0; size < 64; ++size) {
    for (const auto& border : borders("abi", size))
      EXPECT_FALSE(both_ways(border, [](Request& r, std::string one, std::string other) {
        r.compiler = std::move(one);
        r.abi_tag = std::move(other);
      })) << size;
    for (const auto& border : borders("flag", size))
      EXPECT_FALSE(both_ways(border, [](Request& r, std::string one, std::string other) {
        r.flags = {std::move(one), std::move(other)};
      })) << size;
    for (const auto& border : borders("text", size))
      EXPECT_FALSE(both_ways(border, [](Request& r, std::string one, std::string other) {
        r.headers = {{std::move(one), std::move(other)}};
      })) << size;
  }
}

TEST(RequestDigest, AnElementMovedBetweenTheListsCounts) {
  Request flags, headers;
  flags.flags = {"a.h", "int a;"};
  headers.headers = {{"a.h", "int a;"}};
  EXPECT_NE(request_digest(flags), request_digest(headers));
}

// ---- the artifact key -----------------------------------------------------------------------------------------------

using KeyFields = std::tuple<std::string, std::string, std::string, std::string, std::string>;

Digest key_of(const KeyFields& fields) {
  const auto& [compiler, identity, triple, isa, includes] = fields;
  return artifact_key(sha256("request"), {compiler, "", identity}, {triple, isa},
                      includes.empty() ? std::nullopt : std::optional(sha256(includes)));
}

TEST(ArtifactKey, UnlikeCutsOfOneTextHaveUnlikeKeys) {
  Random any(kSeed + 5);
  const std::string text = "gccgccx86-64x86-64";
  std::map<Digest, KeyFields> seen;
  for (int i = 0; i < 3000; ++i) {
    std::array<std::size_t, 5> at{};
    for (auto& border : at) border = any.below(text.size() + 1);
    std::ranges::sort(at);
    const auto part = [&](std::size_t n) { return text.substr(at[n], at[n + 1] - at[n]); };
    const KeyFields fields{part(0), part(1), part(2), part(3), any.coin() ? "" : text.substr(at[4])};
    const auto [it, is_new] = seen.emplace(key_of(fields), fields);
    ASSERT_EQ(it->second, fields);
  }
  EXPECT_GT(seen.size(), 100U);
}

TEST(ArtifactKey, EachFieldCounts) {
  Random any(kSeed + 6);
  for (int i = 0; i < kRequests; ++i) {
    const KeyFields fields{any.text(), any.text(), any.text(), any.text(), any.text()};
    const auto with = [&fields](auto change) {
      KeyFields changed = fields;
      change(changed);
      return key_of(changed);
    };
    const Digest key = key_of(fields);
    ASSERT_NE(key, with([&](KeyFields& f) { std::get<0>(f) = any.text_other_than(std::get<0>(f)); }));
    ASSERT_NE(key, with([&](KeyFields& f) { std::get<1>(f) = any.text_other_than(std::get<1>(f)); }));
    ASSERT_NE(key, with([&](KeyFields& f) { std::get<2>(f) = any.text_other_than(std::get<2>(f)); }));
    ASSERT_NE(key, with([&](KeyFields& f) { std::get<3>(f) = any.text_other_than(std::get<3>(f)); }));
    ASSERT_NE(key, with([&](KeyFields& f) { std::get<4>(f) = any.text_other_than(std::get<4>(f)); }));
    const auto& [compiler, identity, triple, isa, includes] = fields;
    ASSERT_NE(key, artifact_key(sha256("another"), {compiler, "", identity}, {triple, isa}));
    ASSERT_EQ(artifact_key(sha256("r"), {compiler, "/one", identity}, {triple, isa}),
              artifact_key(sha256("r"), {compiler, "/other", identity}, {triple, isa}));
  }
}

Identity identity() {
  Identity identity;
  identity.version = "1";
  identity.pid = 1;
  identity.compilers = {{"clang", "", "clang 19"}};
  identity.triple = "x86_64-pc-linux-gnu";
  identity.native_isa = "cpu +feature";
  identity.store = "/home/one/store";
  identity.include_roots = {{"/opt/one", sha256("headers").hex()}};
  return identity;
}

// Who asks, where and when; where things lie; who else is there.
TEST(ArtifactKey, IsTheSameForEverybodyOnEveryNode) {
  Request request;
  request.origin = "int f(void) { return 1; }\n";
  request.isa_level = isa_levels().front();
  const auto key = resolve(request, identity())->key;

  Identity elsewhere = identity();
  elsewhere.version = "2";
  elsewhere.pid = 77;
  elsewhere.store = "/scratch/other";
  elsewhere.store_is_shared = true;
  elsewhere.read_only_stores = {"/site"};
  elsewhere.include_roots[0].first = "/usr/local/other";
  elsewhere.compilers.push_back({"gcc", "/usr/bin/gcc", "another"});
  elsewhere.native_isa = "another cpu";
  const testing::TemporaryDirectory directory;
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const testing::ScopedEnvironment environment{
      {"HOME", "/nowhere"},   {"USER", "nobody"},       {"LOGNAME", "nobody"},      {"HOSTNAME", "other"},
      {"TZ", "Asia/Tokyo"},   {"LC_ALL", "de_DE"},      {"SOURCE_DATE_EPOCH", "0"}, {"CPATH", "/include"},
      {"CFLAGS", "-O0"},      {"JITC_CFLAGS", "-O0"},   {"JITC_ISA", "native"},     {"JITC_STORE", "/other"},
      {"TMPDIR", "/nowhere"}, {"PATH", "/nowhere/bin"}, {"SLURM_JOB_ID", "42"},     {"JITC_CC", "gcc"}};
  request.name = "other.c";
  request.job = "42";
  EXPECT_EQ(resolve(request, elsewhere)->key, key);
  std::filesystem::current_path(before);
}

TEST(Hasher, UnlikeListsOfFieldsHaveUnlikeDigests) {
  Random any(kSeed + 7);
  using Field = std::tuple<char, std::string, std::string>;
  std::map<Digest, std::vector<Field>> seen;
  for (int i = 0; i < 20000; ++i) {
    std::vector<Field> fields(any.below(4));
    Hasher hasher("test");
    for (auto& [type, name, value] : fields) {
      type = "tnhl"[any.below(4)];
      name = any.text().substr(0, any.below(3));
      const std::size_t number = any.below(3);
      value = type == 't' ? any.text().substr(0, any.below(9)) : std::to_string(number);
      if (type == 't') hasher.text(name, value);
      if (type == 'n') hasher.number(name, number);
      if (type == 'h') hasher.digest(name, sha256(value));
      if (type == 'l') hasher.list(name, number);
    }
    const auto [it, is_new] = seen.emplace(hasher.finish(), fields);
    ASSERT_EQ(it->second, fields) << i;
  }
  EXPECT_GT(seen.size(), 1000U);
}

}  // namespace
}  // namespace jitc::common
