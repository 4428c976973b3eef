// objc_msgSend and its variants, x86-64 System V.  The fast path finds the method in a hash table of
// (class, selector) with short chains; it must be cheap, since host encode cost is measured on this runtime.
#if !defined(__x86_64__)
#error "objc_msgSend exists for x86-64 only"
#endif

// Registers that may carry arguments, saved around the slow lookup.
#define SAVE                                                                                        \
    "pushq %rbp; movq %rsp,%rbp; subq $192,%rsp; andq $-16,%rsp\n"                                  \
    "movq %rdi,(%rsp); movq %rsi,8(%rsp); movq %rdx,16(%rsp); movq %rcx,24(%rsp)\n"                 \
    "movq %r8,32(%rsp); movq %r9,40(%rsp); movq %rax,48(%rsp)\n"                                    \
    "movups %xmm0,64(%rsp); movups %xmm1,80(%rsp); movups %xmm2,96(%rsp); movups %xmm3,112(%rsp)\n" \
    "movups %xmm4,128(%rsp); movups %xmm5,144(%rsp); movups %xmm6,160(%rsp); movups %xmm7,176(%rsp)\n"
#define RESTORE                                                                                        \
    "movq %rax,%r11\n"                                                                                 \
    "movups 64(%rsp),%xmm0; movups 80(%rsp),%xmm1; movups 96(%rsp),%xmm2; movups 112(%rsp),%xmm3\n"    \
    "movups 128(%rsp),%xmm4; movups 144(%rsp),%xmm5; movups 160(%rsp),%xmm6; movups 176(%rsp),%xmm7\n" \
    "movq (%rsp),%rdi; movq 8(%rsp),%rsi; movq 16(%rsp),%rdx; movq 24(%rsp),%rcx\n"                    \
    "movq 32(%rsp),%r8; movq 40(%rsp),%r9; movq 48(%rsp),%rax; leave\n"
// r10: class; leaves the cache entry in r11.  Hash as cache_slot() in classes.cpp.
#define PROBE(sel)                                 \
    "movq %r10,%r11; xorq " sel                    \
    ",%r11; imulq $0xFFFFFFFF9E3779B1,%r11,%r11\n" \
    "shrq $48,%r11; andq $0xFFF8,%r11; addq objcrt_cache(%rip),%r11; movq (%r11),%r11\n"
#define FUNCTION(name) ".globl " name "\n.type " name ",@function\n" name ":\n"

asm(".text\n"
    FUNCTION("objc_msgSend")
    "testq %rdi,%rdi; je 1f\n"
    "movq (%rdi),%r10\n" PROBE("%rsi")
    "3: cmpq %r10,(%r11); jne 2f; cmpq %rsi,8(%r11); jne 2f; jmp *16(%r11)\n"
    "2: movq 24(%r11),%r11; testq %r11,%r11; jne 3b\n" SAVE "movq (%rdi),%rdi; call objcrt_lookup@PLT\n" RESTORE "jmp *%r11\n"
    "1: xorl %eax,%eax; xorl %edx,%edx; xorps %xmm0,%xmm0; xorps %xmm1,%xmm1; ret\n"
    // A structure returned in memory: rdi is its place, self and the selector move up by one.
    FUNCTION("objc_msgSend_stret")
    "testq %rsi,%rsi; je 1f\n"
    "movq (%rsi),%r10\n" PROBE("%rdx")
    "3: cmpq %r10,(%r11); jne 2f; cmpq %rdx,8(%r11); jne 2f; jmp *16(%r11)\n"
    "2: movq 24(%r11),%r11; testq %r11,%r11; jne 3b\n" SAVE "movq (%rsi),%rdi; movq %rdx,%rsi; call objcrt_lookup@PLT\n" RESTORE "jmp *%r11\n"
    "1: movq %rdi,%rax; ret\n"
    // rdi: {self, the current class}; the search begins at its superclass.
    FUNCTION("objc_msgSendSuper2")
    SAVE "movq 8(%rdi),%rdi; movq 8(%rdi),%rdi; call objcrt_lookup@PLT\n" RESTORE "movq (%rdi),%rdi; jmp *%r11\n");
