// Reads what external compilers print. Pure text.
#pragma once

#include <jitc/v1/worker.pb.h>

#include <string>
#include <string_view>

namespace jitc::worker {

// "source.c:3:5: error: text" lines with the excerpt that follows them; linkers' "undefined reference" lines as errors
// without a place.
google::protobuf::RepeatedPtrField<v1::Diagnostic> diagnostics_in(std::string_view text);

// Of the following only lines count that a part of the compiler prints in its own name ("cc1: ", "gcc: ", "/usr/bin/ld:
// "): other lines hold words of the source.
// The first line with one of the words that compilers use when an allocation fails; empty: none. Like the next, only
// among the last lines, behind everything that is told about a file: a dying compiler tells nothing more.
std::string memory_complaint_in(std::string_view text);
// The first line of a compiler driver that reports one of its programs dead by a signal; empty: none.
std::string dead_program_in(std::string_view text);
// The name in the first "FILE:LINE:COLUMN: fatal error: " line about an include that is not found; empty: none. #error
// is not fatal, so that words of the source are not taken for it.
std::string missing_file_in(std::string_view text);
// The first "FILE:LINE:COLUMN: error: text" or "<command-line>: error: text" line, of any file; empty: none.
std::string error_in_a_file(std::string_view text);
// The first line about an option that the compiler does not know; empty: none.
std::string unknown_option_in(std::string_view text);

}  // namespace jitc::worker
