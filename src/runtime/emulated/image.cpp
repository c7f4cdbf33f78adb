#include "runtime/emulated/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include <tinygrad/errors.h>

namespace tinygrad::runtime {
namespace {

constexpr uint64_t kLargest = 64 << 20;

template <class T>
T read(std::string_view file, uint64_t at) {
  if (at > file.size() || sizeof(T) > file.size() - at) throw FormatError("the image of a kernel is cut off");
  T out;
  std::memcpy(&out, file.data() + at, sizeof(T));
  return out;
}

template <class Header, class Segment>
void lay_out(std::string_view elf, Image& image) {
  const auto header = read<Header>(elf, 0);
  if (header.e_phentsize != sizeof(Segment)) throw FormatError("this is no image of a kernel");
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto part = read<Segment>(elf, header.e_phoff + i * sizeof(Segment));
    if (part.p_type != PT_LOAD) continue;
    const uint64_t begin = part.p_vaddr, in_memory = part.p_memsz, from = part.p_offset, in_file = part.p_filesz;
    if (begin > kLargest || in_memory > kLargest || in_file > in_memory || from > elf.size() || in_file > elf.size() - from)
      throw FormatError("a part of a kernel's image is not in the file");
    image.bytes.resize(std::max<size_t>(image.bytes.size(), begin + in_memory));
    image.bytes.replace(begin, in_file, elf.substr(from, in_file));
  }
  image.entry = header.e_entry;
  image.pointer_bytes = sizeof header.e_entry;
}

}  // namespace

Image::Image(std::string_view elf) {
  if (elf.size() < EI_NIDENT || !elf.starts_with(std::string_view(ELFMAG, SELFMAG))) throw FormatError("this is no image of a kernel");
  if (elf[EI_CLASS] == ELFCLASS32)
    lay_out<Elf32_Ehdr, Elf32_Phdr>(elf, *this);
  else
    lay_out<Elf64_Ehdr, Elf64_Phdr>(elf, *this);
  if (entry == 0 || entry >= bytes.size()) throw FormatError("the image of a kernel has no beginning");
}

}  // namespace tinygrad::runtime
