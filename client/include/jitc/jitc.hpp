// jitc for C++17: RAII over the C interface, header-only, no further dependency. Units, ownership and collectivity are
// stated in <jitc/jitc.h>; here failures are exceptions of type jitc::Error.
//
//   #include <jitc/mpi.hpp>
//
//   jitc::Context context(jitc::mpi::communicator(PETSC_COMM_WORLD));        // collective
//   jitc::Request request;
//   request.name = "residual.c";
//   request.source = "void f0(const double u[], double f[]) { f[0] = u[0] * u[0]; }";
//   jitc::Module module = context.compile(request);                          // collective: same result on every rank
//   auto f0 = module.symbol<void(const double*, double*)>("f0");             // valid while `module` lives
//   double u = 3, f;
//   f0(&u, &f);
//
// One process without MPI: `jitc::Context context;`. The same calls, the same path.
#ifndef JITC_JITC_HPP
#define JITC_JITC_HPP

#include <jitc/jitc.h>

#include <exception>
#include <functional>
#include <jitc/error.hpp>
#include <jitc/problem.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// jitc for C++.
namespace jitc {

// Owns a table of communicator functions until a Context takes it over. Made by jitc::mpi::communicator.
class Communicator {
 public:
  // Owns what `table.release` gives back.
  explicit Communicator(const jitc_communicator& table) : table_(table) {}
  // `other` owns nothing any more.
  Communicator(Communicator&& other) noexcept : table_(std::exchange(other.table_, jitc_communicator{})) {}
  // `other` owns what this one did.
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(table_, other.table_);
    return *this;
  }
  ~Communicator() {
    if (table_.release) table_.release(table_.state);
  }
  // The table, which stays this object's.
  const jitc_communicator& table() const { return table_; }
  // The table, which is the caller's from now on.
  jitc_communicator release() { return std::exchange(table_, jitc_communicator{}); }

 private:
  jitc_communicator table_;
};

// A loaded module; its functions are valid while it lives.
class Module {
 public:
  // None: no symbols, an empty key.
  Module() = default;
  // Takes `module` over.
  explicit Module(jitc_module* module) : module_(module) {}

  // The address of a function (`symbol<void(double*)>("f")` is a void (*)(double*)) or variable.
  template <class T>
  T* symbol(const std::string& name) const {
    void* address = nullptr;
    jitc_error* error = nullptr;
    const jitc_kind status = jitc_module_symbol(module_.get(), name.c_str(), &address, &error);
    if (status != JITC_OK) throw Error::take(status, error);
    return reinterpret_cast<T*>(address);
  }
  // The same by the name that a problem gave its function; nullptr when that is identically zero.
  template <class T>
  T* function(const std::string& name) const {
    void* address = nullptr;
    jitc_error* error = nullptr;
    const jitc_kind status = jitc_module_function(module_.get(), name.c_str(), &address, &error);
    if (status != JITC_OK) throw Error::take(status, error);
    return reinterpret_cast<T*>(address);
  }
  // The artifact's key, 64 hexadecimal digits.
  std::string key() const { return jitc_module_key(module_.get()); }
  // Where it came from, in the call that returned it; the same on all ranks.
  jitc_origin origin() const { return jitc_module_origin(module_.get()); }
  // The manifest of constants in force: see jitc_module_manifest.
  std::string manifest() const {
    std::size_t length = 0;
    const void* bytes = jitc_module_manifest(module_.get(), &length);
    return std::string(static_cast<const char*>(bytes), length);
  }
  // Whether there is one.
  explicit operator bool() const { return module_ != nullptr; }
  // For the C interface; stays this object's.
  jitc_module* get() const { return module_.get(); }

 private:
  struct Release {
    void operator()(jitc_module* module) const { jitc_module_release(module); }
  };
  std::unique_ptr<jitc_module, Release> module_;
};

// A header that travels with a request, so that its text is in the key.
struct Header {
  std::string name;  // as the #include directive spells it
  std::string text;  // the whole of it
};

// What is asked for; the fields are those of jitc_request.
struct Request {
  std::string source;  // C text
  // Instead of `source`: makes it. What it throws is reported on every rank, with this rank.
  std::function<std::string()> make_source;
  std::string name;                // for people, in progress lines and diagnostics; empty: "source.c"
  std::vector<std::string> flags;  // appended to the setting `cflags`
  std::string compiler;            // "clang" (embedded), "gcc" or an allow-listed path; empty: the setting `cc`
  std::string abi_tag;             // what else decides the binary interface; part of the key
  std::string isa;                 // "common", "native" or a level; empty: the setting `isa`
  std::vector<Header> headers;     // travel with the request
  std::string manifest;            // the layout of constants, any bytes; must be equal on all ranks
  bool exact_flags = false;        // never compiled with other flags, see jitc_request
  bool no_cache = false;           // compiled although the store has it, see jitc_request
};

// One module of Context::compile_all: C text, or a problem and how it is printed.
struct Item {
  // C text.
  Item(Request from) : request(std::move(from)) {}
  // A problem, which must outlive the call.
  Item(Problem& from, EmitOptions how = {}, Request rest = {})
      : request(std::move(rest)), problem(&from), options(std::move(how)) {}

  Request request;             // of a problem: flags, compiler and so on
  Problem* problem = nullptr;  // the caller's; nullptr: the request has the source
  EmitOptions options;         // of the problem
};

// What a waiting rank is told about once a second.
using Progress = jitc_progress;

// How a context is opened.
struct Options {
  std::vector<std::pair<std::string, std::string>> settings;  // name, value
  std::function<void(const Progress&)> progress;              // must not throw
};

// What compiles over one communicator, or in one process alone. Closing it is collective, modules stay loaded.
class Context {
 public:
  // This process alone.
  explicit Context(Options options = {}) { open(nullptr, std::move(options)); }
  // All ranks of the communicator.
  explicit Context(Communicator communicator, Options options = {}) {
    const jitc_communicator table = communicator.release();
    open(&table, std::move(options));
  }

  // Collective. Throws jitc::Error, the same on every rank.
  Module compile(const Request& request) {
    const RawRequest raw(request);
    jitc_module* module = nullptr;
    jitc_error* error = nullptr;
    const jitc_kind status = jitc_compile(context_.get(), &raw.value, &module, &error);
    if (status != JITC_OK) throw Error::take(status, error);
    return Module(module);
  }
  // The same for a problem; `request` gives flags, compiler and so on, and has neither source nor manifest.
  Module compile(Problem& problem, const EmitOptions& options = {}, const Request& request = {}) {
    const RawRequest raw(request);
    const jitc_emit_options raw_options = options.raw();
    jitc_module* module = nullptr;
    jitc_error* error = nullptr;
    const jitc_kind status =
        jitc_compile_problem(context_.get(), problem.get(), &raw_options, &raw.value, &module, &error);
    if (status != JITC_OK) throw Error::take(status, error);
    return Module(module);
  }

  // Several modules together: one certificate, compiles at the same time, all or nothing. In the order of `items`.
  // Before it takes part it copies no text, only addresses; where there is not even memory for these, std::bad_alloc is
  // thrown on this rank alone, and the others wait for it as for a lost one.
  std::vector<Module> compile_all(const std::vector<Item>& items) {
    std::vector<RawItem> raw;
    raw.reserve(items.size());
    for (const Item& item : items) raw.emplace_back(item);
    std::vector<jitc_item> values;
    for (RawItem& one : raw) values.push_back(one.view());
    std::vector<jitc_module*> handles(items.size());
    std::vector<Module> modules(items.size());
    jitc_error* error = nullptr;
    const jitc_kind status = jitc_compile_all(context_.get(), values.data(), values.size(), handles.data(), &error);
    if (status != JITC_OK) throw Error::take(status, error);
    for (std::size_t i = 0; i < modules.size(); ++i) modules[i] = Module(handles[i]);
    return modules;
  }

  // What it has done so far.
  jitc_stats stats() const {
    jitc_stats stats = {};
    stats.size = sizeof stats;
    jitc_context_stats(context_.get(), &stats);
    return stats;
  }
  // True after a call has timed out or the communicator has failed.
  bool is_broken() const { return jitc_context_is_broken(context_.get()) != 0; }
  // For the C interface; stays this object's.
  jitc_context* get() const { return context_.get(); }

 private:
  struct Close {
    void operator()(jitc_context* context) const { jitc_context_close(context); }
  };

  // The C interface's view of a request, valid while that lives.
  struct RawRequest {
    explicit RawRequest(const Request& request) {
      for (const std::string& flag : request.flags) flags.push_back(flag.c_str());
      for (const Header& header : request.headers) headers.push_back({header.name.c_str(), header.text.c_str()});
      value.size = sizeof value;
      value.source = or_null(request.source);
      value.source_length = request.source.size();
      if (request.make_source) {
        value.make_source = &make_source;
        value.make_source_state = const_cast<std::function<std::string()>*>(&request.make_source);
      }
      value.name = or_null(request.name);
      value.flags = flags.data();
      value.flag_count = flags.size();
      value.compiler = or_null(request.compiler);
      value.abi_tag = or_null(request.abi_tag);
      value.isa = or_null(request.isa);
      value.headers = headers.data();
      value.header_count = headers.size();
      value.manifest = request.manifest.empty() ? nullptr : request.manifest.data();
      value.manifest_length = request.manifest.size();
      value.exact_flags = request.exact_flags ? 1 : 0;
      value.no_cache = request.no_cache ? 1 : 0;
    }
    static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

    std::vector<const char*> flags;
    std::vector<jitc_header> headers;
    jitc_request value = {};
  };

  // The same of an item.
  struct RawItem {
    explicit RawItem(const Item& item) : request(item.request), problem(item.problem), options(item.options.raw()) {}
    jitc_item view() {
      jitc_item value = {};
      value.size = sizeof value;
      value.request = &request.value;
      value.problem = problem ? problem->get() : nullptr;
      value.options = &options;
      return value;
    }

    RawRequest request;
    Problem* problem;
    jitc_emit_options options;
  };

  static int make_source(void* state, jitc_text* text) {
    // The C interface carries no exceptions: whatever the caller's function throws becomes this rank's failure.
    try {
      const std::string source = (*static_cast<std::function<std::string()>*>(state))();
      jitc_text_append(text, source.data(), source.size());
      return 0;
    } catch (const std::exception& thrown) {
      jitc_text_fail(text, thrown.what());
    } catch (...) {  // a type that has no text
      jitc_text_fail(text, "the source function threw something that is not a std::exception");
    }
    return 1;
  }

  void open(const jitc_communicator* table, Options options) {
    std::vector<jitc_setting> settings;
    for (const auto& [name, value] : options.settings) settings.push_back({name.c_str(), value.c_str()});
    jitc_options raw = {};
    raw.size = sizeof raw;
    raw.settings = settings.data();
    raw.setting_count = settings.size();
    if (options.progress) {
      progress_ = std::make_unique<std::function<void(const Progress&)>>(std::move(options.progress));
      raw.progress = [](void* state, const jitc_progress* progress) {
        (*static_cast<std::function<void(const Progress&)>*>(state))(*progress);
      };
      raw.progress_state = progress_.get();
    }
    jitc_context* context = nullptr;
    jitc_error* error = nullptr;
    const jitc_kind status = jitc_context_open(table, &raw, &context, &error);
    if (status != JITC_OK) throw Error::take(status, error);
    context_.reset(context);
  }

  std::unique_ptr<std::function<void(const Progress&)>> progress_;  // at a fixed address: the library keeps a pointer
  std::unique_ptr<jitc_context, Close> context_;
};

}  // namespace jitc

#endif  // JITC_JITC_HPP
