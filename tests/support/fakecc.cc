// jitc-fakecc: a compiler that misbehaves on order. Its orders are comments of the source, in their order:
//
//   // fakecc: allocate 500M       touches that much memory
//   // fakecc: reserve 4G          takes that much address space and touches nothing of it
//   // fakecc: file 100M           writes a file of that size, whose pages the kernel keeps
//   // fakecc: fork                goes on in a child of another session, waits for it and tells of its end as gcc does
//   // fakecc: swarm 300           starts that many processes, which stay
//   // fakecc: relay 8             uses CPU time for 0.8 s in each of that many processes, one after the other
//   // fakecc: orphan              leaves a process behind that nobody waits for
//   // fakecc: note PATH           creates the file
//   // fakecc: hold PATH           waits until the file exists
//   // fakecc: spin                uses CPU time for ever
//   // fakecc: print 10M           writes that much noise
//   // fakecc: complain            says that there is an error
//   // fakecc: latin               the same with bytes that are no UTF-8
//   // fakecc: crash 11            ends itself by a signal
//   // fakecc: exit 3              ends with this status, without a module
//   // fakecc: half                compiles, then cuts the module in half
//   // fakecc: text                writes a text where the module should be
//
// Without an order it is gcc, and as a preprocessor it always is.
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr const char* kCompiler = "/usr/bin/gcc";
constexpr std::string_view kMark = "// fakecc: ";
constexpr std::size_t kPage = 4096;

struct Order {
  std::string verb;
  std::string object;
};

std::vector<Order> orders_in(const std::string& path) {
  std::vector<Order> orders;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kMark)) continue;
    std::istringstream words(line.substr(kMark.size()));
    Order order;
    words >> order.verb >> order.object;
    orders.push_back(order);
  }
  return orders;
}

std::size_t bytes_of(const std::string& text) {
  const std::size_t number = std::strtoull(text.c_str(), nullptr, 10);
  if (text.ends_with('K')) return number << 10;
  if (text.ends_with('M')) return number << 20;
  if (text.ends_with('G')) return number << 30;
  return number;
}

std::vector<std::pair<void*, std::size_t>> allocated;

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "virtual memory exhausted: %s\n", std::strerror(errno));
    std::exit(1);
  }
  allocated.emplace_back(memory, bytes);
  return memory;
}

void allocate(std::size_t bytes) {
  void* memory = reserve(bytes);
  for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
}

void write_file(std::size_t bytes) {
  const std::string block(1 << 20, 'x');
  std::ofstream file("pages");
  for (std::size_t done = 0; done < bytes; done += block.size()) file << block;
}

void go_on_in_child() {
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    // As a program that was executed: without its parent's memory.
    for (const auto& [memory, bytes] : allocated) munmap(memory, bytes);
    return;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "gcc: fatal error: %s signal terminated program cc1\n", strsignal(WTERMSIG(status)));
  }
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

void swarm(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (;;) pause();
    }
    if (pid > 0) continue;
    std::perror("gcc: fatal error: cannot fork");
    std::exit(1);
  }
}

void relay(int count) {
  constexpr std::clock_t kShare = CLOCKS_PER_SEC * 8 / 10;
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      while (std::clock() < kShare) {
      }
      std::_Exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

void leave_orphan() {
  const pid_t pid = fork();
  if (pid > 0) {
    waitpid(pid, nullptr, 0);
    return;
  }
  setsid();
  if (fork() > 0) std::_Exit(0);
  for (;;) pause();
}

void hold(const std::string& path) {
  const int watch = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(watch, std::filesystem::path(path).parent_path().c_str(), IN_CREATE | IN_MOVED_TO);
  struct stat info{};
  char event[kPage];
  while (stat(path.c_str(), &info) != 0 && read(watch, event, sizeof event) > 0) {
  }
  close(watch);
}

[[noreturn]] void spin() {
  const volatile bool for_ever = true;
  while (for_ever) {
  }
  std::abort();
}

void print_noise(std::size_t bytes) {
  const std::string line = "noise noise noise noise noise noise noise noise noise noise noi\n";
  for (std::size_t done = 0; done < bytes; done += line.size()) std::fputs(line.c_str(), stderr);
}

std::string output_of(int count, char** arguments) {
  for (int i = 1; i + 1 < count; ++i) {
    if (std::string_view(arguments[i]) == "-o") return arguments[i + 1];
  }
  return "a.out";
}

int compile_and_cut(int count, char** arguments) {
  const pid_t pid = fork();
  if (pid == 0) {
    execv(kCompiler, arguments);
    std::_Exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const std::string output = output_of(count, arguments);
  std::filesystem::resize_file(output, std::filesystem::file_size(output) / 2);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  arguments[0] = const_cast<char*>(kCompiler);  // gcc finds its parts by it
  const bool preprocesses =
      std::any_of(arguments, arguments + count, [](const char* word) { return std::string_view(word) == "-E"; });
  for (const Order& order : preprocesses ? std::vector<Order>() : orders_in("source.c")) {
    if (order.verb == "allocate") allocate(bytes_of(order.object));
    if (order.verb == "reserve") reserve(bytes_of(order.object));
    if (order.verb == "file") write_file(bytes_of(order.object));
    if (order.verb == "swarm") swarm(std::atoi(order.object.c_str()));
    if (order.verb == "relay") relay(std::atoi(order.object.c_str()));
    if (order.verb == "fork") go_on_in_child();
    if (order.verb == "orphan") leave_orphan();
    if (order.verb == "note") std::ofstream(order.object).put('\n');
    if (order.verb == "hold") hold(order.object);
    if (order.verb == "spin") spin();
    if (order.verb == "print") print_noise(bytes_of(order.object));
    if (order.verb == "complain") std::fputs("source.c:1:1: error: of words alone\n", stderr);
    if (order.verb == "latin") std::fputs("source.c:1:1: error: caf\xe9\n    1 | caf\xe9 \xc3\xa9\n", stderr);
    if (order.verb == "crash") raise(std::atoi(order.object.c_str()));
    if (order.verb == "exit") return std::atoi(order.object.c_str());
    if (order.verb == "half") return compile_and_cut(count, arguments);
    if (order.verb == "text") {
      std::ofstream(output_of(count, arguments)) << "not a module\n";
      return 0;
    }
  }
  execv(kCompiler, arguments);
  std::perror(kCompiler);
  return 127;
}
