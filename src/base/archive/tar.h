#pragma once
/// Tar archives: POSIX.1-2001 (ustar and pax) and GNU's.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tinygrad::archive {

struct TarFile {
  std::string name;
  std::span<const std::byte> bytes;  ///< in the archive's memory
};

/// The regular files, in the order of the archive; links, folders and devices are left out. Throws FormatError, naming the archive.
std::vector<TarFile> read_tar(std::span<const std::byte> archive, const std::string& name);

}  // namespace tinygrad::archive
