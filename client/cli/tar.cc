#include "client/cli/tar.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;

// Where the fields lie in a header.
struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kTime{136, 12}, kSum{148, 8},
    kType{156, 1}, kMagic{257, 8}, kPrefix{345, 155};
constexpr std::string_view kUstar("ustar\00000", 8);

std::string_view bytes_of(std::string_view block, Field field) { return block.substr(field.at, field.size); }

std::string_view text_of(std::string_view block, Field field) {
  const std::string_view bytes = bytes_of(block, field);
  return bytes.substr(0, bytes.find('\0'));
}

void put(std::string& block, Field field, std::string_view text) { block.replace(field.at, text.size(), text); }

// Octal digits that fill the field but for its last byte, which is 0.
void put_number(std::string& block, Field field, std::uint64_t number) {
  for (std::size_t at = field.at + field.size - 1; at-- > field.at; number /= 8)
    block[at] = static_cast<char>('0' + number % 8);
}

std::optional<std::uint64_t> number_in(std::string_view block, Field field) {
  std::string_view text = bytes_of(block, field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || rest.find_first_not_of(std::string_view(" \0", 2)) != std::string_view::npos)
    return std::nullopt;
  return number;
}

// With blanks in the place of the sum itself.
std::uint64_t sum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < block.size(); ++at)
    sum += at >= kSum.at && at < kSum.at + kSum.size ? ' ' : static_cast<unsigned char>(block[at]);
  return sum;
}

}  // namespace

std::string tar_header(std::string_view name, std::uint64_t size) {
  std::string block(kTarBlock, '\0');
  put(block, kName, name.substr(0, kName.size));
  put_number(block, kMode, 0644);
  put_number(block, kUid, 0);
  put_number(block, kGid, 0);
  put_number(block, kSize, size);
  put_number(block, kTime, 0);
  put(block, kType, "0");
  put(block, kMagic, kUstar);
  put_number(block, {kSum.at, kSum.size - 1}, sum_of(block));
  put(block, {kSum.at + kSum.size - 1, 1}, " ");
  return block;
}

std::size_t tar_padding(std::uint64_t size) {
  return static_cast<std::size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
}

std::string tar_end() { return std::string(2 * kTarBlock, '\0'); }

common::Result<std::optional<TarEntry>> tar_entry(std::string_view block) {
  if (block.find_first_not_of('\0') == std::string_view::npos) return std::nullopt;
  const auto size = number_in(block, kSize);
  if (bytes_of(block, kMagic).substr(0, 5) != "ustar" || !size || number_in(block, kSum) != sum_of(block))
    return fail(ErrorKind::kCorrupt, "not a header of a tar archive");
  TarEntry entry{.name = std::string(text_of(block, kName)), .size = *size};
  if (const std::string_view prefix = text_of(block, kPrefix); !prefix.empty())
    entry.name = std::string(prefix) + "/" + entry.name;
  const char type = block[kType.at];
  entry.is_file = type == '0' || type == '\0';
  entry.is_directory = type == '5';
  return entry;
}

}  // namespace jitc::cli
