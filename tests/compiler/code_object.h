#pragma once
/// What AMD's loader reads of a code object: the notes of an ELF file (LLVM, "User Guide for AMDGPU Backend", Code Object V3 and later).

#include <elf.h>

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tinygrad::compiler::test {

/// The metadata of its kernels; under "target", in each, what it is for.
inline std::vector<nlohmann::json> kernels_metadata(std::string_view object) {
  const auto at = [&]<class T>(T value, size_t offset) {
    if (offset + sizeof(T) > object.size()) throw std::runtime_error("the code object is cut off");
    std::memcpy(&value, object.data() + offset, sizeof(T));
    return value;
  };
  const auto header = at(Elf64_Ehdr{}, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != 224 || header.e_type != ET_DYN)
    throw std::runtime_error("not a linked code object of an AMD GPU");
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = at(Elf64_Phdr{}, header.e_phoff + i * header.e_phentsize);
    if (segment.p_type != PT_NOTE) continue;
    for (size_t place = segment.p_offset, end = segment.p_offset + segment.p_filesz; place < end;) {
      const auto note = at(Elf64_Nhdr{}, place);
      const size_t name = place + sizeof note, content = name + (note.n_namesz + 3) / 4 * 4;
      constexpr unsigned kMetadata = 32;  // NT_AMDGPU_METADATA
      if (note.n_type == kMetadata && object.substr(name, 6) == "AMDGPU") {
        const nlohmann::json all = nlohmann::json::from_msgpack(object.substr(content, note.n_descsz));
        std::vector<nlohmann::json> kernels = all.at("amdhsa.kernels");
        for (nlohmann::json& k : kernels) k["target"] = all.at("amdhsa.target");
        return kernels;
      }
      place = content + (note.n_descsz + 3) / 4 * 4;
    }
  }
  throw std::runtime_error("the code object has no metadata");
}

/// That of its only kernel.
inline nlohmann::json kernel_metadata(std::string_view object) {
  const std::vector<nlohmann::json> kernels = kernels_metadata(object);
  if (kernels.size() != 1) throw std::runtime_error("not one kernel");
  return kernels[0];
}

}  // namespace tinygrad::compiler::test
