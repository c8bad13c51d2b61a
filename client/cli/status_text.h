// What `jitc status` prints.
#pragma once

#include <string>
#include <string_view>

namespace jitc::cli {

// "3 d 4 h", "2 h 5 min", "7 s".
std::string duration_text(double seconds);

// Lines for people, from the daemon's answers (JSON objects of rpc::Daemon::query). Pure. `uptime_seconds` below 0: not
// known. `utf8`: what the terminal takes; others' words (names) become printable.
std::string status_text(std::string_view hello, std::string_view jobs, std::string_view stats, double uptime_seconds,
                        bool utf8);

}  // namespace jitc::cli
