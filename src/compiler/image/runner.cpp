#include "compiler/image/sources.h"

namespace tinygrad::compiler {

const char* runner_program() {
  return R"c(
typedef __UINTPTR_TYPE__ address;  // a register
typedef unsigned long long number;

#if defined(__hexagon__)
#define NUMBER "r6"
#define ARGUMENT(i) "r" #i
#define TRAP "trap0(#1)"
#elif defined(__aarch64__)
#define NUMBER "x8"
#define ARGUMENT(i) "x" #i
#define TRAP "svc #0"
#elif defined(__riscv)
#define NUMBER "a7"
#define ARGUMENT(i) "a" #i
#define TRAP "ecall"
#endif

// The numbers are Linux's for all processors that came after x86.
static address system_call(int which, address a, address b, address c, address d, address e, address f) {
  register address r0 __asm__(ARGUMENT(0)) = a;
  register address r1 __asm__(ARGUMENT(1)) = b;
  register address r2 __asm__(ARGUMENT(2)) = c;
  register address r3 __asm__(ARGUMENT(3)) = d;
  register address r4 __asm__(ARGUMENT(4)) = e;
  register address r5 __asm__(ARGUMENT(5)) = f;
  register address n __asm__(NUMBER) = which;
  __asm__ volatile(TRAP : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(n) : "memory");
  return r0;
}

enum { system_read = 63, system_write = 64, system_exit_group = 94, system_munmap = 215, system_mmap = 222 };
enum { peer = 0, shared = 3 };  // descriptors

static int failed(address result) { return result > (address)-4096; }
static void leave(int status) { system_call(system_exit_group, status, 0, 0, 0, 0, 0); }

static void receive(void* to, address bytes) {
  for (address done = 0; done < bytes;) {
    address n = system_call(system_read, peer, (address)to + done, bytes - done, 0, 0, 0);
    if (n == 0 || failed(n)) leave(n != 0);
    done += n;
  }
}

static void answer(number value) {
  if (system_call(system_write, peer, (address)&value, sizeof value, 0, 0, 0) != sizeof value) leave(1);
}

// Nowhere: 0.
static address map(address bytes, int access, int flags, int file) {
  address at = system_call(system_mmap, 0, bytes, access, flags, file, 0);
  return failed(at) ? 0 : at;
}

struct request { number what, a, b, c, d; };
enum { load = 1, unload = 2, run = 3 };
typedef void kernel(void* const* buffers, const long long* variables, long long begin, long long end, void* scratch);

// Memory that was written here, so that an emulator or a cache of instructions knows of it.
static address loaded(const char* image, address bytes) {
  address at = map(bytes, 7, 0x22, -1);
  if (at != 0)
    for (address i = 0; i < bytes; ++i) ((volatile char*)at)[i] = image[i];
  return at;
}

void _start(void) {
  number size;
  receive(&size, sizeof size);
  address memory = map(size, 3, 1, shared);
  answer(memory);
  for (;;) {
    struct request r;
    receive(&r, sizeof r);
    if (r.what == load) {
      answer(loaded((const char*)memory + r.a, r.b));
    } else if (r.what == unload) {
      answer(system_call(system_munmap, r.a, r.b, 0, 0, 0, 0));
    } else {
      ((kernel*)(address)r.a)((void* const*)memory, (const long long*)(memory + (address)r.b), 0, r.c, (void*)(address)r.d);
      answer(0);
    }
  }
}
)c";
}

}  // namespace tinygrad::compiler
