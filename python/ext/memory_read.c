#include "memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* What user space may have on 64-bit machines; also keeps offsets of /proc/self/mem positive. */
#define ADDRESS_LEAST 4096u
#define ADDRESS_MOST ((uint64_t)1 << 56)

static bool may_be_memory(uint64_t address, uint64_t size)
{
    return address >= ADDRESS_LEAST && address < ADDRESS_MOST &&
           size <= ADDRESS_MOST - address;
}

const char *core_read_mode_name(enum core_read_mode mode)
{
    static const char *const names[] = {"process_vm_readv", "/proc/self/mem", "gil"};
    return mode < CORE_READ_MODES ? names[mode] : "none";
}

static size_t read_vm(core_memory *reader, const core_extent *extents, size_t count)
{
    struct iovec here[CORE_EXTENTS], there[CORE_EXTENTS];
    size_t usable = 0;
    for (; usable < count && usable < CORE_EXTENTS; usable++) {
        const core_extent *at = &extents[usable];
        if (!may_be_memory(at->address, at->size)) {
            break;
        }
        here[usable] = (struct iovec){at->to, at->size};
        there[usable] = (struct iovec){(void *)(uintptr_t)at->address, at->size};
    }
    if (usable == 0) {
        return 0;
    }
    ssize_t got = process_vm_readv(reader->pid, here, usable, there, usable, 0);
    size_t whole = 0;
    for (; whole < usable && got >= (ssize_t)extents[whole].size; whole++) {
        got -= (ssize_t)extents[whole].size;
    }
    return whole;
}

static size_t read_mem(core_memory *reader, const core_extent *extents, size_t count)
{
    size_t whole = 0;
    for (; whole < count; whole++) {
        const core_extent *at = &extents[whole];
        if (!may_be_memory(at->address, at->size) ||
            pread(reader->fd, at->to, at->size, (off_t)at->address) !=
                (ssize_t)at->size) {
            break;
        }
    }
    return whole;
}

size_t core_read_all(core_memory *reader, const core_extent *extents, size_t count)
{
    switch (reader->mode) {
    case CORE_READ_VM:
        return read_vm(reader, extents, count);
    case CORE_READ_MEM:
        return read_mem(reader, extents, count);
    default:
        break;
    }
    size_t whole = 0;
    for (; whole < count && may_be_memory(extents[whole].address, extents[whole].size);
         whole++) {
        memcpy(extents[whole].to, (const void *)(uintptr_t)extents[whole].address,
               extents[whole].size);
    }
    return whole;
}

int core_read(core_memory *reader, uint64_t address, void *to, size_t size)
{
    const core_extent extent = {address, (uint32_t)size, to};
    return core_read_all(reader, &extent, 1) == 1 ? 0 : -1;
}

static bool reader_works(core_memory *reader)
{
    static const char probe[] = "stepwatch reads itself";
    char copy[sizeof probe] = "";
    return core_read(reader, (uint64_t)(uintptr_t)probe, copy, sizeof copy) == 0 &&
           memcmp(copy, probe, sizeof probe) == 0;
}

void core_memory_open(core_memory *reader, enum core_read_mode best, const char **why)
{
    *reader = (core_memory){.mode = CORE_READ_VM, .fd = -1, .pid = (int)getpid()};
    *why = NULL;
    if (best <= CORE_READ_VM && reader_works(reader)) {
        return;
    }
    reader->mode = CORE_READ_MEM;
    if (best <= CORE_READ_MEM) {
        struct stat status;
        reader->fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
        if (reader->fd >= 0 && fstat(reader->fd, &status) == 0 && reader_works(reader)) {
            reader->device = status.st_dev;
            reader->inode = status.st_ino;
            *why = "the sampler reads stacks through /proc/self/mem, because "
                   "process_vm_readv is not allowed here";
            return;
        }
        if (reader->fd >= 0) {
            close(reader->fd);
            reader->fd = -1;
        }
    }
    reader->mode = CORE_READ_GIL;
    *why = "the sampler looks from the main thread and with the GIL, because neither "
           "process_vm_readv nor /proc/self/mem is allowed here: only while the main "
           "thread runs Python code, and not without cost";
}

void core_memory_close(core_memory *reader)
{
    struct stat status;
    /* A program that closed all descriptors may have this number for a file of its own now. */
    if (reader->fd >= 0 && fstat(reader->fd, &status) == 0 &&
        status.st_dev == reader->device && status.st_ino == reader->inode) {
        close(reader->fd);
    }
    reader->fd = -1;
}
