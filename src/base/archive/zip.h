#pragma once
/// Zip archives (PKWARE's APPNOTE 6.3), zip64 included: what the central directory lists.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tinygrad::archive {

struct ZipFile {
  std::string name;
  std::span<const std::byte> packed;  ///< in the archive's memory
  bool is_deflated = false;           ///< else it is stored as it is
  uint64_t size = 0;                  ///< when unpacked
  uint32_t crc = 0;                   ///< CRC-32 of the unpacked bytes

  /// Throws FormatError for a stored file whose bytes are not those that the archive lists.
  void check_stored(const std::string& archive_name) const;
  /// Throws FormatError.
  std::vector<std::byte> unpack(const std::string& archive_name) const;
};

/// All files and folders, in the order of the directory. Throws FormatError, naming the archive: for damaged ones, and for what is
/// encrypted, split over disks, packed by another method, named twice, or overlaps.
std::vector<ZipFile> read_zip(std::span<const std::byte> archive, const std::string& name);

}  // namespace tinygrad::archive
