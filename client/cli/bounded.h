// A look at what may never answer: a file system whose server is gone holds whoever touches it, beyond any signal. So
// it is done by a child process, which is left behind when it is too late.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cli/doctor_text.h"

namespace jitc::cli {

// How a look says what it does and finds.
class Teller {
 public:
  explicit Teller(int socket) : socket_(socket) {}
  // What comes next, by the name of its check: should it stay there, that is the one that hangs.
  void step(const std::string& check) const;
  void operator()(const Finding& finding) const;

 private:
  void send(char kind, const std::string& text) const;
  int socket_;
};

// Runs `look` in a child of this process, which must have no threads, and adds what it tells, at the end what it died
// of or where it stayed after `seconds`. `waiting` is called a few times a second with the step. False: interrupted;
// then the child has ended by itself, or was ended.
bool look_within(double seconds, const std::function<void(const Teller&)>& look, std::vector<Finding>& findings,
                 const std::function<void(const std::string&)>& waiting);

}  // namespace jitc::cli
