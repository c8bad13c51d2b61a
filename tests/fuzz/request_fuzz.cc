// What comes over the socket and from the worker, mutated as bytes and field by field: each message is refused with a
// reason that can be sent back, or becomes a request whose keys anybody computes and which can be handed to the worker.
#include <google/protobuf/stubs/logging.h>

#include <string>

#include "common/utf8.h"
#include "daemon/service/marshal.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace jitc;
using common::Error;
using common::ErrorKind;
using fuzz::Mutator;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const common::Identity& identity() {
  static const common::Identity identity = [] {
    common::Identity known;
    known.version = "1";
    known.compilers = {{"clang", "", "embedded 19"}, {"gcc", "/usr/bin/gcc", "abc"}, {"icx", "/opt/icx", ""}};
    known.triple = "x86_64-pc-linux-gnu";
    known.native_isa = "cpu +x";
    known.store = "/store";
    known.include_roots = {{"/opt/headers", common::sha256("headers").hex()}};
    return known;
  }();
  return identity;
}

// Arrives as it was sent.
template <class T>
bool crosses_the_socket(const T& message) {
  T arrived;
  const std::string bytes = message.SerializeAsString();
  return arrived.ParseFromString(bytes) && arrived.SerializeAsString() == bytes;
}

std::string check_error(const Error& error) {
  if (error.message.empty()) return "refused without saying why: " + common::to_line(error);
  if (!crosses_the_socket(service::to_wire(error))) return "an error that cannot be sent: " + common::to_line(error);
  const auto status = service::to_status(error);
  return common::is_utf8(status.error_message()) ? "" : "a status that is not UTF-8";
}

std::string check_compile(v1::CompileRequest message, const service::RequestPolicy& policy) {
  const auto prepared = service::prepare(std::move(message), policy, identity());
  if (!prepared) {
    const ErrorKind kind = prepared.error().kind;
    if (kind != ErrorKind::kUsage && kind != ErrorKind::kRefused && kind != ErrorKind::kInvalidSource)
      return "refused as " + common::to_line(prepared.error());
    return check_error(prepared.error());
  }
  if (prepared->resolved.request != common::request_digest(prepared->request)) return "another request digest";
  if (prepared->resolved.key != common::resolve(prepared->request, identity())->key) return "another key";
  if (prepared->request.text().size() > policy.max_source_bytes) return "a source that is too large was taken";
  service::StartOrder order;
  order.include_roots = policy.include_roots;
  if (!crosses_the_socket(service::start_command(*prepared, order))) return "the worker would not understand it";
  v1::Headers headers;
  if (!headers.ParseFromString(service::headers_payload(*prepared))) return "the worker would not read its headers";
  return static_cast<std::size_t>(headers.headers_size()) == prepared->request.headers.size() ? "" : "headers are lost";
}

std::string check_hello(const v1::HelloRequest& message) {
  const auto reply = service::hello(message, {.identity = identity(),
                                              .offered = {},
                                              .max_compilers = 1,
                                              .memory_budget = 1,
                                              .figures = {},
                                              .enforcement = "none"});
  if (!reply) return check_error(reply.error());
  return crosses_the_socket(*reply) ? "" : "a reply that cannot be sent";
}

std::string check_report(const v1::WorkerReport& message) {
  const auto event = service::from_wire(message, {});
  if (!event) return check_error(event.error());
  const auto* finished = std::get_if<service::WorkerFinished>(&*event);
  if (finished == nullptr) return {};
  const bool is_done = finished->outcome == service::WorkerFinished::Outcome::kDone;
  if (is_done) return message.finished().check() ? "" : "done, and there is no object";
  return check_error(finished->error);
}

void change_field(Message& message, const FieldDescriptor& field, Mutator& mutator) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = field.is_repeated() ? "-O2" : reflection.GetString(message, &field);
      mutator.change(text);
      if (field.type() == FieldDescriptor::TYPE_STRING) text = common::valid_utf8(text);
      if (field.is_repeated()) {
        reflection.AddString(&message, &field, text);
      } else {
        reflection.SetString(&message, &field, text);
      }
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT32:
      if (!field.is_repeated()) reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(mutator.below(~0UL)));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      if (!field.is_repeated()) reflection.SetUInt64(&message, &field, mutator.below(~0UL) << mutator.below(64));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!field.is_repeated()) reflection.SetBool(&message, &field, mutator.below(2) == 0);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:  // numbers that the enumeration does not have as well
      if (!field.is_repeated()) reflection.SetEnumValue(&message, &field, static_cast<int>(mutator.below(12)) - 1);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* part =
          field.is_repeated() ? reflection.AddMessage(&message, &field) : reflection.MutableMessage(&message, &field);
      const auto& parts = *part->GetDescriptor();
      if (parts.field_count() > 0)
        change_field(*part,
                     *parts.field(static_cast<int>(mutator.below(static_cast<std::size_t>(parts.field_count())))),
                     mutator);
      break;
    }
    default:
      break;
  }
}

std::string check_compile(const v1::CompileRequest& message) {
  service::RequestPolicy policy;
  policy.include_roots = {"/opt/headers"};
  if (auto wrong = check_compile(message, policy); !wrong.empty()) return wrong;
  policy.max_source_bytes = 20;
  return check_compile(message, policy);
}

template <class T>
std::string check_as(const std::string& input, std::string (*check)(const T&)) {
  T message;
  return message.ParseFromString(input) ? check(message) : "";  // gRPC answers to what is none
}

std::string check(const std::string& input) {
  if (auto wrong = check_as<v1::CompileRequest>(input, check_compile); !wrong.empty()) return wrong;
  if (auto wrong = check_as<v1::HelloRequest>(input, check_hello); !wrong.empty()) return wrong;
  return check_as<v1::WorkerReport>(input, check_report);
}

// Ends up as bytes again, as a client would send them.
template <class T>
void change_as(std::string& input, Mutator& mutator) {
  T message;
  if (!message.ParseFromString(input)) return;
  const auto& fields = *T::descriptor();
  for (std::size_t changes = 1 + mutator.below(3); changes > 0; --changes)
    change_field(message,
                 *fields.field(static_cast<int>(mutator.below(static_cast<std::size_t>(fields.field_count())))),
                 mutator);
  input = message.SerializeAsString();
}

void change(std::string& input, Mutator& mutator) {
  switch (mutator.below(4)) {
    case 0:
      return change_as<v1::HelloRequest>(input, mutator);
    case 1:
      return change_as<v1::WorkerReport>(input, mutator);
    default:
      return change_as<v1::CompileRequest>(input, mutator);
  }
}

v1::CompileRequest plain_request(const std::string& origin) {
  v1::CompileRequest request;
  request.set_origin(origin);
  request.add_flags("-O2");
  request.set_compiler("clang");
  request.set_isa_wish("x86-64");
  return request;
}

std::vector<std::string> messages() {
  std::vector<std::string> all{plain_request("int f;\n").SerializeAsString()};
  auto full = plain_request("#include \"a.h\"\nvoid f(double x[]) { if (x[0] > 0) { x[1] = g((x[2] + 1) * 2); } }\n");
  full.set_code("int f(void) { return 0; }\r\n");
  for (const char* flag : {"-I/opt/headers", "-DX=1", "-march=native", "-std=gnu11", "-mavx2"}) full.add_flags(flag);
  full.set_abi_tag("petsc 3.18");
  full.set_share("1");
  full.set_cse("0");
  full.set_emitter_version(3);
  full.set_isa_level("x86-64-v2");
  full.set_name("name");
  full.set_job("job");
  full.set_want_bytes(true);
  auto* header = full.add_headers();
  header->set_name("a.h");
  header->set_text("int g(int);\n");
  all.push_back(full.SerializeAsString());
  v1::HelloRequest hello;
  hello.mutable_protocol()->set_oldest(1);
  hello.mutable_protocol()->set_newest(1);
  hello.set_client("jitc 1");
  all.push_back(hello.SerializeAsString());
  v1::WorkerReport report;
  report.mutable_started()->set_job(1);
  report.mutable_started()->set_pid(2);
  all.push_back(report.SerializeAsString());
  report.mutable_usage()->add_jobs()->set_bytes(3);
  all.push_back(report.SerializeAsString());
  auto& finished = *report.mutable_finished();
  finished.set_outcome(v1::WorkerReport::Finished::INVALID_SOURCE);
  finished.set_message("wrong");
  finished.add_diagnostics()->set_excerpt("int f(");
  finished.add_functions()->set_name("f");
  finished.set_evidence("proof");
  finished.add_flags_used("-O2");
  all.push_back(report.SerializeAsString());
  finished.set_outcome(v1::WorkerReport::Finished::DONE);
  all.push_back(report.SerializeAsString());
  return all;
}

}  // namespace

fuzz::Target fuzz::target() {
  google::protobuf::SetLogHandler(nullptr);  // it tells of each message that is not UTF-8
  auto words = fuzz::binary_numbers();
  for (const char* word : {"native",
                           "common",
                           "x86-64-v4",
                           "gcc",
                           "icx",
                           "/opt/icx",
                           "auto",
                           "-fplugin=x.so",
                           "-I/opt/headers/..",
                           "-I/etc",
                           "-include",
                           "-DA='b c'",
                           "-mtune=native",
                           "-march=znver9",
                           "-O3",
                           "../a.h",
                           "/a.h",
                           "((((((((",
                           "{{{{{{{{",
                           "if (x) ",
                           "else if ",
                           "? 1 : ",
                           "= = =",
                           "/*",
                           "*/",
                           "//\\\n",
                           "\"",
                           "'",
                           "#include <stdio.h>\n",
                           "\xff",
                           "\xc0\x80",
                           "\xed\xa0\x80",
                           "\xf4\x90\x80\x80",
                           "\x0a\x04",
                           "\x12",
                           "\x1a\x03",
                           "\r\n"})
    words.emplace_back(word);
  return {.name = "request_fuzz", .corpus = messages(), .words = std::move(words), .check = check, .change = change};
}
