#pragma once
/// Runs PTX text, item by item, as its manual has it: what the renderer's kernels are checked with where there is no GPU. It knows the
/// instructions that the renderer uses, and throws for others.

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/kernel_info.h>

namespace tinygrad::test {

/// Memory of a kernel: an address range of the global space.
struct PtxBuffer {
  uint64_t address = 0;
  std::span<std::byte> bytes;
};

class PtxMachine {
 public:
  /// Throws std::runtime_error for text that it cannot read.
  explicit PtxMachine(const std::string& text);

  /// Runs all work-groups, each with so many bytes of memory as the launch gives. Arguments are 64-bit numbers in the order of the kernel's
  /// parameters. Throws std::runtime_error for an access outside of the buffers, a barrier that not all items reach, ...
  void run(std::span<const uint64_t> arguments, std::span<const PtxBuffer> buffers, const LaunchDims& dims, size_t given_bytes);

  const std::string& entry() const { return entry_; }
  size_t parameter_count() const { return parameters_.size(); }
  size_t shared_bytes() const { return shared_bytes_; }  ///< that the text declares

 private:
  struct Operand {
    enum Kind : uint8_t { reg, number, text, list, address } kind = text;
    int index = -1;     // of a register, also of an address
    uint64_t bits = 0;  // a number, the offset of an address
    std::string name;   // a label, a variable, a special register
    std::vector<Operand> list_of = {};
  };
  enum class Does : uint8_t {
    nothing,
    barrier,
    multiply,
    branch,
    ret,
    access,
    copy,
    commit,
    wait,
    multiply_shared,
    order_registers,
    order_memory,
    commit_products,
    wait_products,
    tensor_memory,
    group_id,
    move,
    unpack,
    set,
    select,
    convert,
    compute
  };
  enum class Alu : uint8_t {
    add,
    sub,
    mul,
    mad,
    mad_wide,
    fma,
    div,
    rem,
    rcp,
    sqrt,
    neg,
    abs,
    max,
    max_nan,
    min,
    and_,
    or_,
    xor_,
    not_,
    shl,
    shr
  };
  enum class Relation : uint8_t { eq, ne, lt, ge, gt, neu, nan };
  struct Type {
    char kind = 'b';  // 's', 'u', 'b', 'f', 'p', or 'h' for bf16
    int bits = 0;
    bool is_real() const { return kind == 'f' || kind == 'h'; }
  };
  struct Instruction {
    Does does = Does::nothing;
    Alu alu{};
    Relation relation{};
    Type type;  // the last part of the name
    int guard = -1;
    bool guard_negated = false;
    std::vector<std::string> name;  // "ld", "global", "f32"
    std::vector<Operand> operands;
    int line = 0;
  };
  /// To shared memory, that is not there before it is waited for.
  struct Copy {
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };
  struct Item {
    std::vector<uint64_t> registers;
    std::vector<std::byte> local;
    size_t pc = 0;
    unsigned id[3] = {0, 0, 0};
    bool done = false;
    std::deque<std::vector<Copy>> copies{1};  ///< the sets that were committed, and the one that is open
    /// Registers of products that are under way, and of those that were committed, by number: nobody may read them.
    std::map<int, uint64_t> products, committed;
    std::vector<uint8_t> changed;                       ///< registers, since the last wgmma.fence
    std::vector<std::pair<size_t, size_t>> own_writes;  ///< bytes of shared memory, since the last fence of the proxy: first, behind
    // Of tcgen05:
    std::map<int, uint64_t> loads;      ///< registers that are loaded, and not waited for
    std::map<size_t, uint32_t> stores;  ///< places that are stored to, likewise
    bool is_behind = false;             ///< a barrier, with a fence behind it
    bool has_accessed = false;          ///< the memory, with no fence since
  };
  struct Group;

  void read_line(const std::string& line, int number);
  static void understand(Instruction& i);
  static void understand_copy(Instruction& i);
  static void understand_products(Instruction& i);
  static Type type_of(std::string_view name);
  static uint64_t arithmetic(Alu op, Type type, std::span<const uint64_t> s, int line);
  static bool compared(Relation how, Type type, uint64_t p, uint64_t q);
  static uint64_t converted(const Instruction& i, std::span<const uint64_t> s);
  Operand read_operand(std::string_view text);
  int register_index(std::string_view name);
  void step(Group& group, Item& item);
  void multiply(Group& group, size_t first_item);
  void multiply_shared(Group& group, size_t first_item);
  static std::vector<double> shared_factor(const Group& group, const Instruction& i, uint64_t descriptor, bool lies_along_k, size_t across,
                                           DType dtype);
  static void show_writes(Group& group, Item& item);
  static void end_products(Item& item, const Instruction& i);
  void use_tensor_memory(Group& group, Item& item, const Instruction& i);
  void access_tensor_memory(Group& group, Item& item, const Instruction& i) const;
  void multiply_into_memory(Group& group, Item& item, const Instruction& i) const;
  static void set(Item& item, int number, uint64_t value);
  static void note_write(Group& group, Item& item, const std::byte* at, size_t bytes);
  uint64_t value(const Item& item, const Operand& operand) const;
  void compute(Item& item, const Instruction& i);
  void access(Group& group, Item& item, const Instruction& i);
  void copy(Group& group, Item& item, const Instruction& i);
  static void wait(Group& group, Item& item, size_t pending);
  std::byte* resolve(Group& group, Item& item, const Instruction& i, std::string_view space, uint64_t address, size_t bytes);

  std::string entry_, given_;  ///< what it calls the memory that a launch gives
  std::vector<std::string> parameters_;
  std::vector<Instruction> code_;
  std::map<std::string, size_t, std::less<>> labels_;
  std::map<std::string, int, std::less<>> registers_;
  std::map<std::string, uint64_t, std::less<>> variables_;  // of shared and local memory: their places
  size_t shared_bytes_ = 0, local_bytes_ = 0;

  std::span<const uint64_t> arguments_;
  std::span<const PtxBuffer> buffers_;
};

}  // namespace tinygrad::test
