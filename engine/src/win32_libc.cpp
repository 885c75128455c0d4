// On Windows the library asks for no C library, not even for what compilers call by themselves.
#if defined(_WIN32)

#include <stddef.h>

extern "C" {

void *memcpy(void *to, const void *from, size_t count) {
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    return start;
}

void *memset(void *to, int value, size_t count) {
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    return start;
}

// Windows makes stack pages one after the other, each when the one before is touched. A function
// whose frame is larger than a page calls this first, with the frame's size in rax; it touches
// every page, and changes no register.
__attribute__((naked)) void ___chkstk_ms(void) {
    __asm__ volatile(
        "push %rcx\n"
        "push %rax\n"
        "lea 24(%rsp), %rcx\n"  // the stack as the caller has it
        "1:\n"
        "cmp $0x1000, %rax\n"
        "jbe 2f\n"
        "sub $0x1000, %rcx\n"
        "orq $0, (%rcx)\n"
        "sub $0x1000, %rax\n"
        "jmp 1b\n"
        "2:\n"
        "sub %rax, %rcx\n"
        "orq $0, (%rcx)\n"
        "pop %rax\n"
        "pop %rcx\n"
        "ret\n");
}
}

#endif
