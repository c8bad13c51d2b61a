// Seeded points at which a module of a problem is called before anybody gets it, and what its functions must give there
// (docs/canary.md). It travels with a request and is in no key: it follows from what the key is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jitc::common {

struct Canary {
  // The values of all arguments, one array after another, and the two that are passed by value.
  struct Point {
    std::vector<double> numbers;
    double t = 0;
    double u_t_shift = 0;
    bool operator==(const Point&) const = default;
  };
  static constexpr std::size_t kMostArguments = 256;
  // A parameter that is not a double, in the order of the function's.
  struct Argument {
    enum class Kind : std::uint8_t {
      kInteger,    // `value`
      kIntegers,   // the array that begins at integers[value]
      kNumbers,    // `count` of the point's numbers from `value` on; each `copies` times in a call for many points
      kConstants,  // the same, once whatever the number of points
      kOutput,     // room for outputs[value]
    };
    Kind kind = Kind::kInteger;
    std::int64_t value = 0;
    std::uint32_t count = 0;
    bool operator==(const Argument&) const = default;
  };
  // An array that a function fills. Point by point: what each entry must be, and how far it may be from that. An entry
  // that nobody knows at a point may be infinitely far off, and even no number.
  struct Output {
    std::string kind;                  // "g3"
    std::string of;                    // "block u-p"
    std::vector<std::uint32_t> shape;  // its indices' extents, the last one fastest
    std::vector<double> want;
    std::vector<double> allowed;
    bool operator==(const Output&) const = default;
  };
  struct Call {
    std::string function;
    std::vector<Argument> arguments;
    std::vector<Output> outputs;
    bool operator==(const Call&) const = default;
  };
  std::string table;            // symbol of the table that names the functions; empty: they are symbols themselves
  std::uint32_t int_bits = 32;  // of the integers in `integers`
  std::uint32_t copies = 0;     // of a point in a call for many; 0: functions of one point
  std::vector<std::int64_t> integers;
  std::vector<Point> points;
  std::vector<Call> calls;
  bool operator==(const Canary&) const = default;
};

}  // namespace jitc::common
