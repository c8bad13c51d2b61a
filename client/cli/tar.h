// The archive format that every tar reads: ustar of POSIX.1-1988, as much of it as a list of regular files needs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"

namespace jitc::cli {

inline constexpr std::size_t kTarBlock = 512;
inline constexpr std::uint64_t kTarMostBytes = (std::uint64_t{8} << 30) - 1;  // of one file

struct TarEntry {
  std::string name;
  std::uint64_t size = 0;  // of the content, which follows in whole blocks
  bool is_file = false;
  bool is_directory = false;  // what is neither: a link, a device, another dialect's record
};

// The block before the content of a regular file: mode 0644, owner and time 0, so that equal contents make equal
// archives. The name has at most 100 bytes, the size at most kTarMostBytes.
std::string tar_header(std::string_view name, std::uint64_t size);
// Zeros behind content of this size, up to the next block.
std::size_t tar_padding(std::uint64_t size);
// What ends an archive: two blocks of zeros.
std::string tar_end();

// What a block of kTarBlock bytes says is next; nullopt: the end. kCorrupt: it is no header.
common::Result<std::optional<TarEntry>> tar_entry(std::string_view block);

}  // namespace jitc::cli
