#include "compiler/hexagon/sources.h"

namespace tinygrad::compiler {

const char* hexagon_runner() {
  return R"c(
typedef unsigned int uint;

static int system_call(int number, uint a, uint b, uint c, uint d, uint e, uint f) {
  register int r0 __asm__("r0") = a;
  register int r1 __asm__("r1") = b;
  register int r2 __asm__("r2") = c;
  register int r3 __asm__("r3") = d;
  register int r4 __asm__("r4") = e;
  register int r5 __asm__("r5") = f;
  register int r6 __asm__("r6") = number;
  __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r6) : "memory");
  return r0;
}

enum { system_read = 63, system_write = 64, system_exit_group = 94, system_munmap = 215, system_mmap = 222 };
enum { peer = 0, shared = 3 };  // descriptors

static void leave(int status) { system_call(system_exit_group, status, 0, 0, 0, 0, 0); }

static void receive(void* to, uint bytes) {
  for (uint done = 0; done < bytes;) {
    int n = system_call(system_read, peer, (uint)to + done, bytes - done, 0, 0, 0);
    if (n <= 0) leave(n < 0);
    done += n;
  }
}

static void answer(uint value) {
  if (system_call(system_write, peer, (uint)&value, 4, 0, 0, 0) != 4) leave(1);
}

static uint map(uint bytes, int access, int flags, int file) {
  uint at = system_call(system_mmap, 0, bytes, access, flags, file, 0);
  return at > -4096u ? 0 : at;
}

struct request { uint what, a, b, c; };
enum { load = 1, unload = 2, run = 3 };
typedef void kernel(void* const* buffers, const long long* variables, long long begin, long long end, void* scratch);

// Memory that was written here, so that an emulator or a cache of instructions knows of it.
static uint loaded(const char* image, uint bytes) {
  uint at = map(bytes, 7, 0x22, -1);
  if (at != 0)
    for (uint i = 0; i < bytes; ++i) ((volatile char*)at)[i] = image[i];
  return at;
}

void _start(void) {
  uint size, memory;
  receive(&size, 4);
  memory = map(size, 3, 1, shared);
  answer(memory);
  for (;;) {
    struct request r;
    receive(&r, sizeof r);
    if (r.what == load) {
      answer(loaded((const char*)(memory + r.a), r.b));
    } else if (r.what == unload) {
      answer(system_call(system_munmap, r.a, r.b, 0, 0, 0, 0));
    } else {
      ((kernel*)r.a)((void* const*)memory, (const long long*)(memory + r.c), 0, 1, (void*)r.b);
      answer(0);
    }
  }
}
)c";
}

}  // namespace tinygrad::compiler
