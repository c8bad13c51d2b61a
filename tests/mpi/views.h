// Which ranks see what one of them has published: shared file systems show it to some earlier than to others.
#pragma once

#include <array>
#include <string_view>

namespace jitc::testing {

struct View {
  std::string_view name;
  bool (*sees)(int rank, int ranks);
};

inline constexpr std::array kViews{
    View{"root", [](int rank, int) { return rank == 0; }},  // the published deadlock
    View{"but_root", [](int rank, int) { return rank != 0; }},
    View{"last", [](int rank, int ranks) { return rank == ranks - 1; }},
    View{"half", [](int rank, int) { return rank % 2 == 1; }},
    View{"nobody", [](int, int) { return false; }},
    View{"all", [](int, int) { return true; }},
};

// nullptr for a name that there is not.
inline const View* view_named(std::string_view name) {
  for (const View& view : kViews)
    if (view.name == name) return &view;
  return nullptr;
}

}  // namespace jitc::testing
