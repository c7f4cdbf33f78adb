#include "runtime/cpu/elf_loader.h"

#include <elf.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMaxBytes = size_t{1} << 30;  // of code and constants: far more than any kernel has, far less than an int32 spans
constexpr size_t kStubBytes = 16;

template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> text, T&&... args) {
  throw FormatError("object file: " + fmt::format(text, std::forward<T>(args)...));
}

/// Reads of a file whose every number is suspect.
class File {
 public:
  explicit File(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      refuse("{} bytes at {} are outside of its {}", size, offset, bytes_.size());
    }
    return bytes_.subspan(offset, size);
  }

  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t count) const {
    if (count > bytes_.size() / sizeof(T)) refuse("a table of {} entries in {} bytes", count, bytes_.size());
    const auto from = part(offset, count * sizeof(T));
    std::vector<T> out(count);
    if (count) std::memcpy(out.data(), from.data(), from.size());
    return out;
  }

  static std::string_view string_at(std::span<const std::byte> strings, uint64_t offset) {
    if (offset >= strings.size()) refuse("a name at {} of {} bytes", offset, strings.size());
    const auto* begin = reinterpret_cast<const char*>(strings.data()) + offset;
    const size_t limit = strings.size() - offset;
    const size_t length = strnlen(begin, limit);
    if (length == limit) refuse("a name without an end");
    return {begin, length};
  }

 private:
  std::span<const std::byte> bytes_;
};

size_t align_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace

class LoadedObject::Loading {
 public:
  Loading(LoadedObject& out, std::span<const std::byte> object, SymbolResolver resolve) : out_(out), file_(object), resolve_(resolve) {}

  void run() {
    read_headers();
    read_symbols();
    read_relocations();
    lay_out();
    map();
    copy_sections();
    fill_stubs();
    for (const Section& s : sections_) relocate(s);
    protect();
    list_functions();
  }

 private:
  // The memory is, each on pages of its own: code and stubs for calls that leave the object; constants and the table of addresses;
  // writable data.
  enum Part { code, constants, data, parts };

  struct Section {
    Elf64_Shdr header;
    bool loaded = false;
    Part part = constants;
    size_t offset = 0;  // in memory
    std::vector<Elf64_Rela> relocations = {};
  };

  void read_headers() {
    const auto head = file_.table<Elf64_Ehdr>(0, 1)[0];
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) refuse("it does not begin like an ELF file");
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64) {
      refuse("it is not for x86-64");
    }
    if (head.e_type != ET_REL) refuse("it is not relocatable");
    if (head.e_shentsize != sizeof(Elf64_Shdr)) refuse("section headers of {} bytes", head.e_shentsize);
    for (const Elf64_Shdr& h : file_.table<Elf64_Shdr>(head.e_shoff, head.e_shnum)) {
      Section s{.header = h};
      s.loaded = (h.sh_flags & SHF_ALLOC) != 0 && h.sh_size != 0;
      s.part = (h.sh_flags & SHF_EXECINSTR) ? code : (h.sh_flags & SHF_WRITE) ? data : constants;
      if (s.loaded && (h.sh_flags & SHF_EXECINSTR) && (h.sh_flags & SHF_WRITE)) refuse("a section that is writable and executable");
      if (s.loaded && h.sh_flags & SHF_TLS) refuse("thread-local data");
      if (h.sh_type != SHT_NOBITS) file_.part(h.sh_offset, h.sh_size);
      sections_.push_back(std::move(s));
    }
  }

  const Section& section(uint64_t index) const {
    if (index >= sections_.size()) refuse("section {} of {}", index, sections_.size());
    return sections_[index];
  }

  void read_symbols() {
    for (const Section& s : sections_) {
      if (s.header.sh_type != SHT_SYMTAB) continue;
      if (!symbols_.empty()) refuse("two symbol tables");
      symbols_ = file_.table<Elf64_Sym>(s.header.sh_offset, s.header.sh_size / sizeof(Elf64_Sym));
      const Elf64_Shdr& names = section(s.header.sh_link).header;
      if (names.sh_type != SHT_STRTAB) refuse("symbols without names");
      names_ = file_.part(names.sh_offset, names.sh_size);
    }
  }

  void read_relocations() {
    for (const Section& s : sections_) {
      if (s.header.sh_type == SHT_REL) refuse("relocations without addends");
      if (s.header.sh_type != SHT_RELA) continue;
      const uint64_t target = s.header.sh_info;
      if (!section(target).loaded) continue;  // debug information
      if (section(target).header.sh_type == SHT_NOBITS) refuse("relocations of a section without bytes");
      auto table = file_.table<Elf64_Rela>(s.header.sh_offset, s.header.sh_size / sizeof(Elf64_Rela));
      for (const Elf64_Rela& r : table) note_needs(r);
      auto& all = sections_[target].relocations;
      all.insert(all.end(), table.begin(), table.end());
    }
  }

  const Elf64_Sym& symbol(uint64_t index) const {
    if (index >= symbols_.size()) refuse("symbol {} of {}", index, symbols_.size());
    return symbols_[index];
  }

  /// Counts the stubs and table entries before memory is laid out.
  void note_needs(const Elf64_Rela& r) {
    const uint64_t index = ELF64_R_SYM(r.r_info);
    switch (ELF64_R_TYPE(r.r_info)) {
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: slots_.emplace(index, slots_.size()); break;
      case R_X86_64_PLT32:
      case R_X86_64_PC32:
        if (symbol(index).st_shndx == SHN_UNDEF) stubs_.emplace(index, stubs_.size());
        break;
      default: break;
    }
  }

  void lay_out() {
    size_t end = 0;
    for (int part = code; part < parts; ++part) {
      part_begin_[part] = end;
      for (Section& s : sections_) {
        if (!s.loaded || s.part != part) continue;
        const uint64_t alignment = s.header.sh_addralign == 0 ? 1 : s.header.sh_addralign;
        if (!std::has_single_bit(alignment) || alignment > kPage) refuse("a section aligned to {}", alignment);
        s.offset = align_up(end, alignment);
        if (s.header.sh_size > kMaxBytes || s.offset > kMaxBytes - s.header.sh_size) refuse("more than {} bytes", kMaxBytes);
        end = s.offset + s.header.sh_size;
      }
      if (part == code) {
        stubs_begin_ = align_up(end, kStubBytes);
        end = stubs_begin_ + stubs_.size() * kStubBytes;
      }
      if (part == constants) {
        slots_begin_ = align_up(end, sizeof(uint64_t));
        end = slots_begin_ + slots_.size() * sizeof(uint64_t);
      }
      end = align_up(end, kPage);
    }
    part_begin_[parts] = end;
    if (end > kMaxBytes) refuse("more than {} bytes", kMaxBytes);
  }

  void map() {
    if (part_begin_[parts] == 0) refuse("there is nothing to load in it");
    void* memory = ::mmap(nullptr, part_begin_[parts], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw OutOfMemoryError(fmt::format("object file: no memory for its {} bytes", part_begin_[parts]));
    out_.memory_ = static_cast<std::byte*>(memory);
    out_.size_ = part_begin_[parts];
  }

  void copy_sections() {
    for (const Section& s : sections_) {
      if (!s.loaded || s.header.sh_type == SHT_NOBITS) continue;
      const auto from = file_.part(s.header.sh_offset, s.header.sh_size);
      std::memcpy(out_.memory_ + s.offset, from.data(), from.size());
    }
  }

  uint64_t address(size_t offset) const { return reinterpret_cast<uint64_t>(out_.memory_) + offset; }

  uint64_t symbol_address(uint64_t index) const {
    if (index == 0) return 0;
    const Elf64_Sym& s = symbol(index);
    if (s.st_shndx == SHN_ABS) return s.st_value;
    if (s.st_shndx == SHN_UNDEF) return external_address(s);
    const Section& in = section(s.st_shndx);
    if (!in.loaded || s.st_value > in.header.sh_size) refuse("symbol {} is not in memory", index);
    return address(in.offset) + s.st_value;
  }

  uint64_t external_address(const Elf64_Sym& s) const {
    const std::string_view name = File::string_at(names_, s.st_name);
    void* found = resolve_(name);
    if (!found) throw CompileError(fmt::format("kernel calls '{}', which kernels may not call", name));
    return reinterpret_cast<uint64_t>(found);
  }

  /// `jmp *2(%rip)` over two bytes, then the address: the rest of the process may be further away than a call reaches.
  void fill_stubs() {
    constexpr unsigned char jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};
    for (const auto& [index, number] : stubs_) {
      std::byte* at = out_.memory_ + stubs_begin_ + number * kStubBytes;
      const uint64_t target = symbol_address(index);
      std::memcpy(at, jump, sizeof jump);
      std::memcpy(at + sizeof jump, &target, sizeof target);
    }
    for (const auto& [index, number] : slots_) {
      const uint64_t target = symbol_address(index);
      std::memcpy(out_.memory_ + slots_begin_ + number * sizeof target, &target, sizeof target);
    }
  }

  void relocate(const Section& s) {
    for (const Elf64_Rela& r : s.relocations) {
      const uint64_t index = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
      const uint64_t place = address(s.offset) + r.r_offset, addend = static_cast<uint64_t>(r.r_addend);
      switch (type) {
        case R_X86_64_NONE: break;
        case R_X86_64_64: write(s, r, symbol_address(index) + addend, 8); break;
        case R_X86_64_PC64: write(s, r, symbol_address(index) + addend - place, 8); break;
        case R_X86_64_32: write(s, r, symbol_address(index) + addend, 4, false); break;
        case R_X86_64_32S: write(s, r, symbol_address(index) + addend, 4); break;
        case R_X86_64_PC32:
        case R_X86_64_PLT32: write(s, r, near_address(index) + addend - place, 4); break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: write(s, r, address(slots_begin_ + slots_.at(index) * sizeof(uint64_t)) + addend - place, 4); break;
        default: refuse("relocation of type {}", type);
      }
    }
  }

  uint64_t near_address(uint64_t index) const {
    const auto stub = stubs_.find(index);
    return stub == stubs_.end() ? symbol_address(index) : address(stubs_begin_ + stub->second * kStubBytes);
  }

  void write(const Section& s, const Elf64_Rela& r, uint64_t value, size_t bytes, bool is_signed = true) {
    if (r.r_offset > s.header.sh_size || bytes > s.header.sh_size - r.r_offset) refuse("a relocation outside of its section");
    if (bytes == 4) {
      const auto wide = static_cast<int64_t>(value);
      const bool fits = is_signed ? wide == static_cast<int32_t>(wide) : value == static_cast<uint32_t>(value);
      if (!fits) refuse("a relocation that does not reach its target");
    }
    std::memcpy(out_.memory_ + s.offset + r.r_offset, &value, bytes);
  }

  void protect() {
    const auto set = [&](Part part, int how) {
      const size_t begin = part_begin_[part], size = part_begin_[part + 1] - begin;
      if (size && ::mprotect(out_.memory_ + begin, size, how) != 0) {
        throw DeviceError(fmt::format("CPU: the system does not let kernels be executed: {}", std::strerror(errno)));
      }
    };
    set(code, PROT_READ | PROT_EXEC);
    set(constants, PROT_READ);
  }

  void list_functions() {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& s = symbols_[i];
      if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || s.st_shndx >= sections_.size()) continue;
      const Section& in = sections_[s.st_shndx];
      if (!in.loaded || in.part != code || s.st_value >= in.header.sh_size) refuse("function {} is not in the code", i);
      out_.functions_.push_back({std::string(File::string_at(names_, s.st_name)), reinterpret_cast<void*>(symbol_address(i))});
    }
  }

  LoadedObject& out_;
  const File file_;
  const SymbolResolver resolve_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const std::byte> names_;
  std::map<uint64_t, size_t> stubs_, slots_;  // symbol -> number
  size_t part_begin_[parts + 1] = {};
  size_t stubs_begin_ = 0, slots_begin_ = 0;
};

LoadedObject::LoadedObject(std::span<const std::byte> object, SymbolResolver resolve) {
  try {
    Loading(*this, object, resolve).run();
  } catch (...) {
    if (memory_) ::munmap(memory_, size_);
    throw;
  }
}

LoadedObject::~LoadedObject() { ::munmap(memory_, size_); }

void* LoadedObject::function(std::string_view name) const {
  for (const Function& f : functions_) {
    if (f.name == name) return f.address;
  }
  throw CompileError(fmt::format("the compiled kernel has no function '{}'", name));
}

}  // namespace tinygrad::runtime
