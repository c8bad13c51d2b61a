// Shows a text again and again: on a terminal in place, until q or Ctrl-C; else, or when they are counted, one after
// the other.
#pragma once

#include <functional>
#include <string>

#include "client/cli/context.h"
#include "client/cli/terminal_text.h"

namespace jitc::cli {

struct Watch {
  double interval = 1;    // seconds
  unsigned count = 0;     // texts; 0: no end
  bool in_lines = false;  // each text is a line, for programs: nothing between them, and no screen on a terminal
};

// `render` makes the text, printable and within the screen, on this thread. An error of its first call is the answer;
// later ones are shown in its place on a terminal, and end it elsewhere. The exit code.
int watch(const Watch& options, const std::function<common::Result<std::string>(const Screen&)>& render);

bool stdout_is_terminal();
// It is one, and NO_COLOR does not forbid them.
bool stdout_takes_colours();
// Does the locale of the environment write UTF-8?
bool locale_is_utf8();

}  // namespace jitc::cli
