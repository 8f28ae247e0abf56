// Floats in integers: the machine has none. "sbf ir" makes each operation on floats a call of a function here. All round to the
// nearest, ties to even, and know subnormal numbers; a NaN that they make is the canonical one. A number is taken apart into
// a sign, a biased exponent e and a mantissa m whose leading bit is bit 63; what is lost below sets the lowest bit.
typedef unsigned u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#define API __attribute__((noinline))
#define IN static inline __attribute__((always_inline))

enum { nan32 = 0x7fc00000u, inf32 = 0x7f800000u };
static const u64 nan64 = 0x7ff8ull << 48, inf64 = 0x7ff0ull << 48;

// leading returns x with its leading bit at bit 63, and how far it was moved. x is not 0.
IN u64 leading(u64 x, i64 *by) {
  i64 n = 0;
  if (!(x >> 32)) n += 32, x <<= 32;
  if (!(x >> 48)) n += 16, x <<= 16;
  if (!(x >> 56)) n += 8, x <<= 8;
  if (!(x >> 60)) n += 4, x <<= 4;
  if (!(x >> 62)) n += 2, x <<= 2;
  if (!(x >> 63)) n += 1, x <<= 1;
  *by = n;
  return x;
}

// down moves x down by n bits; what falls out sets the lowest bit.
IN u64 down(u64 x, i64 n) { return n >= 64 ? x != 0 : n == 0 ? x : x >> n | ((x << (64 - n)) != 0); }

IN u32 pack32(u32 sign, i64 e, u64 m) {
  if (e <= 0) m = down(m, 1 - e), e = 1;
  if (e >= 255) return sign | inf32;
  u64 r = m >> 40, rest = m << 24, half = 1ull << 63;
  r += rest > half || (rest == half && (r & 1));
  return sign + (u32)(((u64)(e - 1) << 23) + r);
}

IN u64 pack64(u64 sign, i64 e, u64 m) {
  if (e <= 0) m = down(m, 1 - e), e = 1;
  if (e >= 2047) return sign | inf64;
  u64 r = m >> 11, rest = m << 53, half = 1ull << 63;
  r += rest > half || (rest == half && (r & 1));
  return sign + ((u64)(e - 1) << 52) + r;
}

// open32 returns the mantissa of a finite number that is not 0, and its exponent.
IN u64 open32(u32 x, i64 *e) {
  i64 n = x >> 23 & 255;
  u64 m = x & 0x7fffff;
  if (n) {
    *e = n;
    return (m | 1 << 23) << 40;
  }
  m = leading(m, &n);
  *e = 41 - n;
  return m;
}

IN u64 open64(u64 x, i64 *e) {
  i64 n = x >> 52 & 2047;
  u64 m = x & ((1ull << 52) - 1);
  if (n) {
    *e = n;
    return (m | 1ull << 52) << 11;
  }
  m = leading(m, &n);
  *e = 12 - n;
  return m;
}

// sum adds two numbers, the first of which has no smaller exponent, and leaves e and the sign of the result. 0: they cancel.
IN u64 sum(u64 a, u64 b, i64 apart, u32 subtract, i64 *e, u32 *flip) {
  a >>= 1, b = down(b, apart + 1); // a loses nothing: its lowest bits are zeros
  u64 m;
  *e += 1;
  *flip = 0;
  if (!subtract) {
    m = a + b;
  } else {
    if (a < b) {
      *flip = 1;
      m = b - a;
    } else {
      m = a - b;
    }
    if (!m) return 0;
  }
  if (m >> 63) return m;
  if (m >> 62) {
    *e -= 1;
    return m << 1;
  }
  i64 n;
  m = leading(m, &n);
  *e -= n;
  return m;
}

API u32 f32_add(u32 a, u32 b) {
  u32 x = a & 0x7fffffff, y = b & 0x7fffffff;
  if (x < y) {
    u32 t = a;
    a = b, b = t, t = x, x = y, y = t;
  }
  if (x >= inf32) return x > inf32 || (y == inf32 && a != b) ? nan32 : a;
  if (!y) return x ? a : a & b;
  i64 e, f;
  u64 m = open32(x, &e), n = open32(y, &f);
  u32 flip;
  m = sum(m, n, e - f, (a ^ b) >> 31, &e, &flip);
  return m ? pack32((a & 1u << 31) ^ flip << 31, e, m) : 0;
}

API u32 f32_sub(u32 a, u32 b) { return f32_add(a, b ^ 1u << 31); }

API u32 f32_mul(u32 a, u32 b) {
  u32 x = a & 0x7fffffff, y = b & 0x7fffffff, sign = (a ^ b) & 1u << 31;
  if (x >= inf32 || y >= inf32) return x > inf32 || y > inf32 || !x || !y ? nan32 : sign | inf32;
  if (!x || !y) return sign;
  i64 e, f;
  u64 m = (open32(x, &e) >> 40) * (open32(y, &f) >> 40);
  e += f - 127;
  if (m >> 47) return pack32(sign, e + 1, m << 16);
  return pack32(sign, e, m << 17);
}

API u32 f32_div(u32 a, u32 b) {
  u32 x = a & 0x7fffffff, y = b & 0x7fffffff, sign = (a ^ b) & 1u << 31;
  if (x > inf32 || y > inf32 || (x == inf32 && y == inf32) || (!x && !y)) return nan32;
  if (x == inf32 || !y) return sign | inf32;
  if (!x || y == inf32) return sign;
  i64 e, f;
  u64 m = open32(x, &e), n = open32(y, &f) >> 40;
  e += 126 - f;
  m >>= 1;
  u64 q = m / n; // of 39 or 40 bits
  q = q << 1 | (q * n != m);
  if (q >> 40) return pack32(sign, e + 1, q << 23);
  return pack32(sign, e, q << 24);
}

// f32_fma is x·y + z with one rounding.
API u32 f32_fma(u32 a, u32 b, u32 c) {
  u32 x = a & 0x7fffffff, y = b & 0x7fffffff, z = c & 0x7fffffff, sign = (a ^ b) & 1u << 31;
  if (x >= inf32 || y >= inf32) {
    if (x > inf32 || y > inf32 || z > inf32 || !x || !y) return nan32;
    return z == inf32 && (c ^ sign) >> 31 ? nan32 : sign | inf32;
  }
  if (z >= inf32) return z > inf32 ? nan32 : c;
  if (!x || !y) return z ? c : c & sign;
  i64 e, f;
  u64 m = (open32(x, &e) >> 40) * (open32(y, &f) >> 40);
  e += f - 126;
  if (m >> 47)
    m <<= 16;
  else
    m <<= 17, e -= 1;
  if (!z) return pack32(sign, e, m);
  u64 n = open32(z, &f);
  u32 subtract = (c ^ sign) >> 31, flip;
  if (e > f || (e == f && m >= n)) {
    m = sum(m, n, e - f, subtract, &e, &flip);
  } else {
    sign = c & 1u << 31;
    m = sum(n, m, f - e, subtract, &f, &flip);
    e = f;
  }
  return m ? pack32(sign ^ flip << 31, e, m) : 0;
}

// f32_cmp returns 1 for less, 2 for equal, 4 for greater, and 8 where one is NaN.
API u32 f32_cmp(u32 a, u32 b) {
  u32 x = a & 0x7fffffff, y = b & 0x7fffffff;
  if (x > inf32 || y > inf32) return 8;
  if (!(x | y)) return 2;
  i64 p = a >> 31 ? -(i64)x : (i64)x, q = b >> 31 ? -(i64)y : (i64)y;
  return p < q ? 1 : p == q ? 2 : 4;
}

API u64 f64_add(u64 a, u64 b) {
  u64 x = a << 1 >> 1, y = b << 1 >> 1;
  if (x < y) {
    u64 t = a;
    a = b, b = t, t = x, x = y, y = t;
  }
  if (x >= inf64) return x > inf64 || (y == inf64 && a != b) ? nan64 : a;
  if (!y) return x ? a : a & b;
  i64 e, f;
  u64 m = open64(x, &e), n = open64(y, &f);
  u32 flip;
  m = sum(m, n, e - f, (u32)((a ^ b) >> 63), &e, &flip);
  return m ? pack64((a ^ (u64)flip << 63) >> 63 << 63, e, m) : 0;
}

API u64 f64_sub(u64 a, u64 b) { return f64_add(a, b ^ 1ull << 63); }

API u64 f64_mul(u64 a, u64 b) {
  u64 x = a << 1 >> 1, y = b << 1 >> 1, sign = (a ^ b) >> 63 << 63;
  if (x >= inf64 || y >= inf64) return x > inf64 || y > inf64 || !x || !y ? nan64 : sign | inf64;
  if (!x || !y) return sign;
  i64 e, f;
  u64 m = open64(x, &e), n = open64(y, &f);
  u64 ml = (u32)m, mh = m >> 32, nl = (u32)n, nh = n >> 32;
  u64 low = ml * nl, mid = mh * nl + (low >> 32), more = ml * nh + (u32)mid;
  u64 high = mh * nh + (mid >> 32) + (more >> 32);
  high |= (u32)low != 0 || (u32)more != 0;
  e += f - 1023;
  if (high >> 63) return pack64(sign, e + 1, high);
  return pack64(sign, e, high << 1);
}

API u64 f64_div(u64 a, u64 b) {
  u64 x = a << 1 >> 1, y = b << 1 >> 1, sign = (a ^ b) >> 63 << 63;
  if (x > inf64 || y > inf64 || (x == inf64 && y == inf64) || (!x && !y)) return nan64;
  if (x == inf64 || !y) return sign | inf64;
  if (!x || y == inf64) return sign;
  i64 e, f;
  u64 m = open64(x, &e) >> 11, n = open64(y, &f) >> 11;
  e += 1023 - f;
  if (m < n) m <<= 1, e -= 1;
  u64 q = 1;
  m -= n;
  for (int i = 0; i < 5; i++) { // 11 bits each
    u64 d = (m << 11) / n;
    m = (m << 11) - d * n;
    q = q << 11 | d;
  }
  return pack64(sign, e, q << 8 | (m != 0));
}

API u64 f64_sqrt(u64 a) {
  u64 x = a << 1 >> 1;
  if (x > inf64 || (a >> 63 && x)) return nan64;
  if (!x || x == inf64) return a;
  i64 e;
  u64 m = open64(x, &e) >> 11;
  e -= 1023;
  if (e & 1) m <<= 1, e -= 1;
  // m·2^56 is a square of 54 or 55 bits: one bit of the root after the other.
  u64 root = 0, rest = 0;
  for (int i = 0; i < 55; i++) {
    u64 two = i < 27 ? m >> (52 - 2 * i) & 3 : 0;
    rest = rest << 2 | two;
    root <<= 1;
    if (rest >= (root << 1 | 1)) rest -= root << 1 | 1, root |= 1;
  }
  return pack64(0, e / 2 + 1023, root << 9 | (rest != 0));
}

API u32 f64_cmp(u64 a, u64 b) {
  u64 x = a << 1 >> 1, y = b << 1 >> 1;
  if (x > inf64 || y > inf64) return 8;
  if (!(x | y)) return 2;
  i64 p = a >> 63 ? -(i64)x : (i64)x, q = b >> 63 ? -(i64)y : (i64)y;
  return p < q ? 1 : p == q ? 2 : 4;
}

API u64 f32_to_f64(u32 a) {
  u64 sign = (u64)(a >> 31) << 63;
  u32 x = a & 0x7fffffff;
  if (x >= inf32) return x > inf32 ? nan64 : sign | inf64;
  if (!x) return sign;
  i64 e;
  u64 m = open32(x, &e);
  return pack64(sign, e + 896, m);
}

API u32 f64_to_f32(u64 a) {
  u32 sign = (u32)(a >> 32) & 1u << 31;
  u64 x = a << 1 >> 1;
  if (x >= inf64) return x > inf64 ? nan32 : sign | inf32;
  if (!x) return sign;
  i64 e;
  u64 m = open64(x, &e);
  return pack32(sign, e - 896, m);
}

IN u64 size(i64 v) { return v < 0 ? -(u64)v : (u64)v; }

API u32 u64_to_f32(u64 v) {
  i64 n;
  if (!v) return 0;
  v = leading(v, &n);
  return pack32(0, 190 - n, v);
}

API u32 i64_to_f32(i64 v) { return u64_to_f32(size(v)) | (v < 0 ? 1u << 31 : 0); }

API u64 u64_to_f64(u64 v) {
  i64 n;
  if (!v) return 0;
  v = leading(v, &n);
  return pack64(0, 1086 - n, v);
}

API u64 i64_to_f64(i64 v) { return u64_to_f64(size(v)) | (v < 0 ? 1ull << 63 : 0); }

// f64_to_u64 is the integer part of what fits; f64_to_i64 is so with a sign.
API u64 f64_to_u64(u64 a) {
  i64 e = (i64)(a >> 52 & 2047) - 1023;
  if (e < 0 || a >> 63) return 0;
  u64 m = (a & ((1ull << 52) - 1) | 1ull << 52) << 11;
  return e > 63 ? ~0ull : m >> (63 - e);
}

API i64 f64_to_i64(u64 a) {
  u64 v = f64_to_u64(a << 1 >> 1), most = ~0ull >> 1;
  if (a >> 63) return v > most ? -(i64)most - 1 : -(i64)v;
  return v > most ? (i64)most : (i64)v;
}

API u64 f32_to_u64(u32 a) { return f64_to_u64(f32_to_f64(a)); }
API i64 f32_to_i64(u32 a) { return f64_to_i64(f32_to_f64(a)); }
