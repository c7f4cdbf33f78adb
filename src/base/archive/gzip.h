#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tinygrad::archive {

/// True where the bytes begin as those of gzip do.
bool is_gzip(std::span<const std::byte> bytes);

/// What gzip packed, of one or several members. Throws FormatError, naming the file, for damaged data and for more than `limit` bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, const std::string& name, size_t limit);

/// Deflated data without a header, as zip has it, of exactly `size` bytes with this CRC-32. Throws FormatError.
std::vector<std::byte> inflate(std::span<const std::byte> bytes, size_t size, uint32_t crc, const std::string& name);

/// The first `count` bytes of such data, or all where it has fewer. Throws FormatError.
std::vector<std::byte> inflate_first(std::span<const std::byte> bytes, size_t count, const std::string& name);

/// The CRC-32 of these bytes, or of what has the CRC-32 `before` and then these bytes.
uint32_t crc_of(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace tinygrad::archive
