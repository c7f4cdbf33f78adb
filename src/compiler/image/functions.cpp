#include "compiler/image/sources.h"

namespace tinygrad::compiler {

const char* memory_functions() {
  return R"c(
typedef __SIZE_TYPE__ size;

void* memcpy(void* to, const void* from, size bytes) {
  for (size i = 0; i < bytes; ++i) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* memmove(void* to, const void* from, size bytes) {
  if ((char*)to <= (const char*)from) return memcpy(to, from, bytes);
  for (size i = bytes; i-- > 0;) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* memset(void* to, int value, size bytes) {
  for (size i = 0; i < bytes; ++i) ((char*)to)[i] = value;
  return to;
}
)c";
}

const char* hexagon_functions() {
  return R"c(
typedef unsigned int uint;
typedef long long llong;
typedef unsigned long long ullong;

// Integers, a bit of the quotient at a time. By zero: 0.

#define DIVISION(T, bits, clz, name)                        \
  static T name(T a, T b, T* rest) {                        \
    T q = 0;                                                \
    if (b != 0 && a >= b) {                                 \
      int s = clz(b) - clz(a);                              \
      for (b <<= s; s >= 0; --s, b >>= 1) {                 \
        q <<= 1;                                            \
        if (a >= b) a -= b, q |= 1;                         \
      }                                                     \
    }                                                       \
    *rest = a;                                              \
    return q;                                               \
  }
DIVISION(uint, 32, __builtin_clz, divide)
DIVISION(ullong, 64, __builtin_clzll, divide_long)

uint __hexagon_udivsi3(uint a, uint b) { uint rest; return divide(a, b, &rest); }
uint __hexagon_umodsi3(uint a, uint b) { uint rest; divide(a, b, &rest); return rest; }
ullong __hexagon_udivdi3(ullong a, ullong b) { ullong rest; return divide_long(a, b, &rest); }
ullong __hexagon_umoddi3(ullong a, ullong b) { ullong rest; divide_long(a, b, &rest); return rest; }

static uint magnitude(int x) { return x < 0 ? -(uint)x : (uint)x; }
static ullong magnitude_long(llong x) { return x < 0 ? -(ullong)x : (ullong)x; }

int __hexagon_divsi3(int a, int b) {
  uint rest, q = divide(magnitude(a), magnitude(b), &rest);
  return (a ^ b) < 0 ? -q : q;
}
int __hexagon_modsi3(int a, int b) {
  uint rest;
  divide(magnitude(a), magnitude(b), &rest);
  return a < 0 ? -rest : rest;
}
llong __hexagon_divdi3(llong a, llong b) {
  ullong rest, q = divide_long(magnitude_long(a), magnitude_long(b), &rest);
  return (a ^ b) < 0 ? -q : q;
}
llong __hexagon_moddi3(llong a, llong b) {
  ullong rest;
  divide_long(magnitude_long(a), magnitude_long(b), &rest);
  return a < 0 ? -rest : rest;
}

// Doubles. A finite one is m * 2^(e - 1023 - 52) with 2^52 <= m < 2^53.

static ullong bits_of(double x) { ullong u; __builtin_memcpy(&u, &x, 8); return u; }
static double with_bits(ullong u) { double x; __builtin_memcpy(&x, &u, 8); return x; }

static const ullong sign_bit = 1ull << 63, infinity = 0x7ffull << 52, implicit = 1ull << 52;

struct number { ullong m; int e; };

static struct number parts(ullong magnitude) {
  struct number n = {magnitude & (implicit - 1), magnitude >> 52};
  if (n.e != 0) {
    n.m |= implicit;
  } else {
    int shift = __builtin_clzll(n.m) - 11;
    n.m <<= shift;
    n.e = 1 - shift;
  }
  return n;
}

// The double nearest to m * 2^(e - 1023 - 62), ties to even, for 2^62 <= m < 2^63, whose lowest bit is set if there is more.
static double rounded(ullong sign, int e, ullong m) {
  if (e >= 0x7ff) return with_bits(sign | infinity);
  if (e <= 0) {
    int shift = 1 - e;
    m = shift > 62 ? 1 : m >> shift | ((m & ((1ull << shift) - 1)) != 0);
    e = 1;
  }
  ullong rest = m & 0x3ff;
  m >>= 10;
  m += rest > 0x200 || (rest == 0x200 && (m & 1));
  return with_bits(sign | (((ullong)(e - 1) << 52) + m));  // what is carried goes into the exponent
}

static double not_a_number(void) { return with_bits(0x7ff8ull << 48); }

double __hexagon_muldf3(double x, double y) {
  ullong sign = (bits_of(x) ^ bits_of(y)) & sign_bit, a = bits_of(x) & ~sign_bit, b = bits_of(y) & ~sign_bit;
  if (a > infinity || b > infinity) return not_a_number();
  if (a == infinity || b == infinity) return a == 0 || b == 0 ? not_a_number() : with_bits(sign | infinity);
  if (a == 0 || b == 0) return with_bits(sign);
  struct number p = parts(a), q = parts(b);
  ullong u = p.m << 11, v = q.m << 11;
  uint u1 = u >> 32, u0 = u, v1 = v >> 32, v0 = v;
  ullong low = (ullong)u0 * v0, middle = (ullong)u1 * v0 + (low >> 32), other = (ullong)u0 * v1 + (uint)middle;
  ullong high = (ullong)u1 * v1 + (middle >> 32) + (other >> 32);
  high |= (uint)low != 0 || (uint)other != 0;
  int e = p.e + q.e - 1023;
  if (high >> 63) {
    high = high >> 1 | (high & 1);
    ++e;
  }
  return rounded(sign, e, high);
}

double __hexagon_divdf3(double x, double y) {
  ullong sign = (bits_of(x) ^ bits_of(y)) & sign_bit, a = bits_of(x) & ~sign_bit, b = bits_of(y) & ~sign_bit;
  if (a > infinity || b > infinity || a == b && (a == 0 || a == infinity)) return not_a_number();
  if (a == infinity || b == 0) return with_bits(sign | infinity);
  if (a == 0 || b == infinity) return with_bits(sign);
  struct number p = parts(a), q = parts(b);
  int e = p.e - q.e + 1023;
  if (p.m < q.m) {
    p.m <<= 1;
    --e;
  }
  ullong quotient = 0;
  for (int i = 0; i < 63; ++i, p.m <<= 1) {
    quotient <<= 1;
    if (p.m >= q.m) p.m -= q.m, quotient |= 1;
  }
  return rounded(sign, e, quotient | (p.m != 0));
}

double sqrt(double x) {
  ullong a = bits_of(x);
  if (a == sign_bit || a == 0 || a == infinity) return x;
  if (a > infinity) return not_a_number();  // those below 0 too
  struct number n = parts(a);
  if (!(n.e & 1)) {
    n.m <<= 1;
    --n.e;
  }
  ullong rest = 0, root = 0;
  for (int i = 0; i < 55; ++i) {  // two bits of the number make one of the root
    rest = rest << 2 | (i < 27 ? n.m >> (52 - 2 * i) & 3 : 0);
    ullong more = root << 2 | 1;
    root <<= 1;
    if (rest >= more) rest -= more, root |= 1;
  }
  return rounded(0, (n.e - 1023) / 2 + 1023, root << 8 | (rest != 0));
}

// A float's root has less than half the digits of a double's, so rounding twice does no harm.
float __hexagon_sqrtf(float x) { return sqrt(x); }

float truncf(float x) {
  uint u;
  __builtin_memcpy(&u, &x, 4);
  int e = (int)(u >> 23 & 0xff) - 127;
  if (e >= 23) return x;
  u &= e < 0 ? 1u << 31 : ~(0x7fffffu >> e);
  __builtin_memcpy(&x, &u, 4);
  return x;
}
double trunc(double x) {
  ullong u = bits_of(x);
  int e = (int)(u >> 52 & 0x7ff) - 1023;
  if (e >= 52) return x;
  return with_bits(u & (e < 0 ? sign_bit : ~((implicit - 1) >> e)));
}

// Adding and taking off what has no digits behind the point.
float roundevenf(float x) {
  float least = __builtin_copysignf(0x1p23f, x);
  return __builtin_fabsf(x) < 0x1p23f ? __builtin_copysignf(x + least - least, x) : x;
}
double roundeven(double x) {
  double least = __builtin_copysign(0x1p52, x);
  return __builtin_fabs(x) < 0x1p52 ? __builtin_copysign(x + least - least, x) : x;
}

void* memcpy(void*, const void*, uint);
void* __hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void* to, const void* from, uint bytes) { return memcpy(to, from, bytes); }
)c";
}

}  // namespace tinygrad::compiler
