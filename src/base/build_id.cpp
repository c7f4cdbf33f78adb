#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace tinygrad {
namespace {

struct Search {
  uintptr_t address;  // in the file that is looked for
  std::string id;
};

bool holds(const dl_phdr_info& file, uintptr_t address) {
  for (int i = 0; i < file.dlpi_phnum; i++) {
    const auto& segment = file.dlpi_phdr[i];
    const uintptr_t begin = file.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && begin <= address && address - begin < segment.p_memsz) return true;
  }
  return false;
}

size_t aligned(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

/// The description of the GNU build ID among the notes of a segment.
std::string id_in(const char* notes, size_t size) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes + at, sizeof head);
    const size_t name = at + sizeof head, description = name + aligned(head.n_namesz);
    if (description + head.n_descsz > size) return {};
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      return {notes + description, head.n_descsz};
    }
    at = description + aligned(head.n_descsz);
  }
  return {};
}

int visit(dl_phdr_info* file, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*file, search.address)) return 0;
  for (int i = 0; i < file->dlpi_phnum && search.id.empty(); i++) {
    const auto& segment = file->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE) search.id = id_in(reinterpret_cast<const char*>(file->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string& id = *new std::string([] {
    Search search{.address = reinterpret_cast<uintptr_t>(&build_id), .id = {}};
    dl_iterate_phdr(visit, &search);
    return std::move(search.id);
  }());
  return id;
}

}  // namespace tinygrad
