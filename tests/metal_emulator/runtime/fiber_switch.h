// The context switch: saves the callee-saved registers of the System V ABI, exchanges stacks.
#pragma once
#if !defined(__x86_64__) || !defined(__linux__)
#error "the Metal emulator runs on x86-64 Linux; other hosts need their own fiber switch"
#endif
extern "C" void msl_switch(void** save_sp, void* to_sp);
