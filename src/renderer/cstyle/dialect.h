#pragma once
/// The languages of the C family differ in names, in how a kernel begins and in what they have of vectors and work-groups: what one of them
/// needs is a table and a few functions.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel_info.h"
#include "renderer/cstyle/expression.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

class AsyncProducts;
class Names;
class Prelude;
struct Value;

/// A word of the kernel's text that is defined only where it is used.
struct Definition {
  std::string_view word, text;    ///< the text may be empty
  std::string_view spelled = {};  ///< what stands in the kernel for it; empty: the word itself
};

/// An argument of a kernel.
struct Parameter {
  std::string type;  ///< "int"; of memory, its elements: "const float"
  std::string name;
  bool is_memory = false;      ///< a pointer
  bool is_restricted = false;  ///< to memory that no other argument shares
};

/// Memory of a work-group.
struct GroupArray {
  std::string type, name;
  int64_t size = 0;   ///< elements
  int64_t place = 0;  ///< in memory that the launch gives, in bytes
  int alignment = 16;
};

/// What a kernel is written from.
struct KernelText {
  const KernelInfo& info;
  std::vector<Parameter> parameters;  ///< memory by slot, variables, chunks, memory in the scratch area
  std::string body;
  int64_t items = 0;  ///< work-items of a group; 0: an expression of variables

  // On a CPU:
  std::vector<UOp> variables = {};    ///< in the order of their parameters
  std::vector<int64_t> scratch = {};  ///< where in the scratch area each memory begins
  bool in_chunks = false;
  bool streams = false;  ///< some stores go past the caches

  // In work-groups:
  std::vector<GroupArray> arrays = {};
  bool is_memory_given = false;  ///< by the launch: the arrays are places in it
  int memory_alignment = 16;     ///< of it
};

/// What a language for work-groups has beside C. Its kernels take memory and then all variables of KernelInfo, 64 bits each. Vectors are
/// only loaded and stored there, and given to and by tensor cores: Target::vector_math is false.
struct GroupDialect {
  std::string_view device_memory, group_memory, private_memory;  ///< in front of the type that a pointer points to: "__global "
  std::string_view barrier;                                      ///< a statement, for the memory of the group; a word of the definitions
  /// A vector at a pointer to its first element, read, and written by a statement; null: through a pointer to vectors.
  std::string (*load_vector)(std::string_view pointer, int lanes);
  std::string (*store_vector)(std::string_view pointer, int lanes, std::string_view x);
  /// Begins to copy 4, 8 or 16 bytes from memory of the device to that of the group, or zeros: a statement. Then statements of COMMIT and
  /// WAIT. null: the language has no such copies.
  std::string (*fetch)(Prelude& prelude, std::string_view to, std::string_view from, int bytes, std::string_view valid) = nullptr;
  std::string (*commit)() = nullptr;
  std::string (*wait)(int pending) = nullptr;
  /// How a kernel's asynchronous products on such a core are written. null: the language has none.
  std::unique_ptr<AsyncProducts> (*products)(Prelude& prelude, Names& names, const KernelInfo& info, const TensorCore& core) = nullptr;
  /// The number of the group (AxisKind::global) or of the item in its group (AxisKind::local), along an axis.
  std::string (*id)(AxisKind kind, int dim);
  /// The types of arguments that are images, only read and only written; empty where the language has none. A texel is four floats.
  std::string_view read_image = {}, written_image = {};
  std::string (*read_texel)(Prelude& prelude, std::string_view image, std::string_view x, std::string_view y) = nullptr;
  std::string (*write_texel)(std::string_view image, std::string_view x, std::string_view y, std::string_view texel) = nullptr;
};

/// How a language writes what the others write differently. The words that all of them share are OpenCL's: uint, ulong, half.
struct Dialect {
  std::string_view name;                           ///< for messages
  std::string_view preamble = {};                  ///< stands first
  std::string_view types[dtype_count];             ///< of scalars; empty: must be lowered before rendering
  std::string_view literal_suffixes[dtype_count];  ///< of scalars
  std::string_view literal_prefixes[dtype_count];  ///< "(half)", where a suffix is not enough to give a number its type
  std::span<const Definition> definitions;         ///< of types and functions that the language has under other names
  std::string_view helper;                         ///< what stands before the result type of a helper function
  std::string_view restricted;                     ///< of a pointer to memory that no other argument shares
  bool overloads = true;     ///< helper functions for several types may have one name; else the name ends with the type
  bool wraps = true;         ///< sums of signed integers that overflow wrap around; else they are computed as unsigned ones
  bool fuses_halves = true;  ///< a multiply-add of halves may be rounded once; else it is twice, whatever the processor has
  /// A multiply-add of scalars is a call of fma(): written as a product and a sum, it would get a product that the compiler has rounded for
  /// another use.
  bool calls_fma = false;

  /// The definition of a vector type; empty where the language has it.
  std::string (*vector_type)(std::string_view element, int lanes, int itemsize);
  /// A vector of a type, from its lanes "a, b, c, d".
  std::string (*vector)(std::string_view type, std::string_view lanes);
  /// A lane of a vector.
  std::string (*lane)(std::string_view vector, int64_t lane);
  /// The same bits as a scalar of another type; `x` binds like a function's argument.
  std::string (*bits)(Prelude& prelude, std::string_view x, DType from, DType to);
  /// A conversion of a scalar that the language has no plain cast for; empty: "(type)x". May be null.
  std::string (*cast)(Prelude& prelude, std::string_view x, DType from, DType to);
  /// Narrow floats that are only converted from and to float32, by cast(); null: none.
  bool (*only_converts)(DType) = nullptr;
  /// CMPLT of scalars of float32 or float64, where the compiler gets `<` wrong; null elsewhere.
  Expr (*less)(Prelude& prelude, DType dtype, const Expr& a, const Expr& b) = nullptr;
  /// Statements of Targets with cache hints: a vector stored past the caches, where a pointer to elements is aligned for that, and what is
  /// at a pointer fetched ahead of its use. null: the language has none.
  std::string (*stream)(Prelude& prelude, std::string_view pointer, const Value& x) = nullptr;
  std::string (*prefetch)(std::string_view pointer, bool is_written) = nullptr;
  /// WMMA.
  Expr (*matrix_product)(Prelude& prelude, const WmmaArg& arg, const Value& a, const Value& b, const Value& c);
  std::string (*kernel)(const KernelText& text);
  const GroupDialect* groups = nullptr;  ///< null: a kernel runs in one thread
};

/// C as clang compiles it for CPUs of 64 bits.
const Dialect& clang_dialect();
/// HIP C++.
const Dialect& hip_dialect();
/// Metal's shading language.
const Dialect& metal_dialect();
/// The same for a Hexagon, whose `long` has 32 bits.
const Dialect& hexagon_dialect();
/// A function for a CPU around a body, and lines behind that; `number` has 64 bits.
std::string cpu_kernel(const KernelText& text, std::string_view number, std::string_view behind = {});
/// OpenCL C 1.2. Without arithmetic on halves these are only converted from and to float.
const Dialect& opencl_dialect(bool has_half);
/// CUDA C++ as NVRTC compiles it, without any header.
const Dialect& cuda_dialect();

}  // namespace tinygrad::renderer::cstyle
