#include "runtime/dsp/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime {
namespace {

constexpr uint32_t kLargest = 64 << 20;
constexpr Elf32_Half kHexagon = 164;  // EM_QDSP6

template <class T>
T read(std::string_view file, uint64_t at) {
  if (at > file.size() || sizeof(T) > file.size() - at) throw FormatError("DSP: the image of a kernel is cut off");
  T out;
  std::memcpy(&out, file.data() + at, sizeof(T));
  return out;
}

}  // namespace

Image::Image(std::string_view elf) {
  const auto header = read<Elf32_Ehdr>(elf, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kHexagon || header.e_phentsize != sizeof(Elf32_Phdr))
    throw FormatError("DSP: this is no image of a kernel");
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto part = read<Elf32_Phdr>(elf, header.e_phoff + i * sizeof(Elf32_Phdr));
    if (part.p_type != PT_LOAD) continue;
    const uint64_t end = uint64_t(part.p_vaddr) + part.p_memsz;
    if (end > kLargest || part.p_filesz > part.p_memsz || part.p_offset > elf.size() || part.p_filesz > elf.size() - part.p_offset)
      throw FormatError("DSP: a part of a kernel's image is not in the file");
    bytes.resize(std::max<size_t>(bytes.size(), end));
    bytes.replace(part.p_vaddr, part.p_filesz, elf.substr(part.p_offset, part.p_filesz));
  }
  entry = header.e_entry;
  if (entry == 0 || entry >= bytes.size()) throw FormatError("DSP: the image of a kernel has no beginning");
}

}  // namespace tinygrad::runtime
