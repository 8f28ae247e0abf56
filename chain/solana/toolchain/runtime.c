// What TinyGo's runtime asks of a machine: memory, which is never given back. The machine clears the heap before each call.
typedef unsigned long long u64;
extern void abort(void) __attribute__((noreturn));

enum { heapBytes = 0x40000 }; // what a transaction may ask for
static const u64 heapStart = 0x300000000ull;

void *allocate(u64 size, void *layout, void *context) __asm__("runtime.alloc");

void *allocate(u64 size, void *layout, void *context) {
  u64 *next = (u64 *)heapStart;
  u64 at = ((*next ? *next : heapStart + 8) + 7) & ~7ull;
  if (size > heapStart + heapBytes - at) abort();
  *next = at + size;
  return (void *)at;
}
