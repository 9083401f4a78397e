/* The import entries of one loaded object, found by its relocations. Everything that is read was
 * read by the dynamic linker before; what does not look as usual is left alone. */
#include "watch/plt.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
#define SW__PLT_JUMP R_X86_64_JUMP_SLOT
#define SW__PLT_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define SW__PLT_JUMP R_AARCH64_JUMP_SLOT
#define SW__PLT_DATA R_AARCH64_GLOB_DAT
#endif

bool sw__plt_holds(const struct dl_phdr_info *object, const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD && at >= begin && at - begin < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

#ifdef SW__PLT_JUMP

bool sw__plt_supported(void)
{
    return true;
}

struct sw__tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_size;
    const ElfW(Rela) * jump, *data;
    size_t jump_size, data_size, relative;
};

/* The C library adds the load address to these in place, others do not, and neither does anyone
 * in the object of the kernel. */
static uintptr_t sw__address(const struct dl_phdr_info *object, ElfW(Addr) value)
{
    return (uintptr_t)(value < object->dlpi_addr ? value + object->dlpi_addr : value);
}

static bool sw__tables_of(const struct dl_phdr_info *object, struct sw__tables *out)
{
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic =
                (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    memset(out, 0, sizeof(*out));
    ElfW(Xword) kind = DT_RELA;
    ElfW(Xword) entry = sizeof(ElfW(Rela));
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const ElfW(Addr) value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            out->symbols = (const ElfW(Sym) *)sw__address(object, value);
            break;
        case DT_STRTAB:
            out->strings = (const char *)sw__address(object, value);
            break;
        case DT_STRSZ:
            out->strings_size = value;
            break;
        case DT_JMPREL:
            out->jump = (const ElfW(Rela) *)sw__address(object, value);
            break;
        case DT_PLTRELSZ:
            out->jump_size = value / sizeof(ElfW(Rela));
            break;
        case DT_PLTREL:
            kind = value;
            break;
        case DT_RELA:
            out->data = (const ElfW(Rela) *)sw__address(object, value);
            break;
        case DT_RELASZ:
            out->data_size = value / sizeof(ElfW(Rela));
            break;
        case DT_RELAENT:
            entry = value;
            break;
        case DT_RELACOUNT:
            out->relative = value;
            break;
        default:
            break;
        }
    }
    if (kind != DT_RELA || !out->jump) {
        out->jump_size = 0;
    }
    if (entry != sizeof(ElfW(Rela)) || !out->data || out->relative > out->data_size) {
        out->data_size = 0;
        out->relative = 0;
    }
    return out->symbols && out->strings && out->strings_size &&
           sw__plt_holds(object, out->symbols) && sw__plt_holds(object, out->strings);
}

/* Whether a whole entry at the address lies in memory of the object that the linker writes to. */
static bool sw__writable(const struct dl_phdr_info *object, uintptr_t at, bool *relro)
{
    bool loaded = false;
    *relro = false;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (at < begin || at - begin + sizeof(void *) > segment->p_memsz) {
            continue;
        }
        loaded = loaded || (segment->p_type == PT_LOAD && (segment->p_flags & PF_W));
        *relro = *relro || segment->p_type == PT_GNU_RELRO;
    }
    return loaded && at % sizeof(void *) == 0;
}

static void sw__relocations(const struct dl_phdr_info *object,
                            const struct sw__tables *tables, const ElfW(Rela) * at,
                            size_t count, sw__plt_wanted wanted, sw__plt_visit visit,
                            void *arg)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned long type = ELF64_R_TYPE(at[i].r_info);
        const unsigned long index = ELF64_R_SYM(at[i].r_info);
        if ((type != SW__PLT_JUMP && type != SW__PLT_DATA) || index == 0) {
            continue;
        }
        const ElfW(Sym) *symbol = &tables->symbols[index];
        if (symbol->st_name >= tables->strings_size) {
            continue;
        }
        struct sw__plt_entry entry = {.name = wanted(tables->strings + symbol->st_name)};
        const uintptr_t slot = (uintptr_t)(object->dlpi_addr + at[i].r_offset);
        if (!entry.name || !sw__writable(object, slot, &entry.relro)) {
            continue;
        }
        entry.slot = (void **)slot;
        entry.undefined = symbol->st_shndx == SHN_UNDEF;
        const void *value = __atomic_load_n(entry.slot, __ATOMIC_RELAXED);
        entry.own_code = sw__plt_holds(object, value);
        entry.raw = value && (uintptr_t)value < object->dlpi_addr && !entry.own_code;
        visit(&entry, arg);
    }
}

void sw__plt_object(const struct dl_phdr_info *object, sw__plt_wanted wanted,
                    sw__plt_visit visit, void *arg)
{
    struct sw__tables tables;
    if (!sw__tables_of(object, &tables)) {
        return;
    }
    sw__relocations(object, &tables, tables.jump, tables.jump_size, wanted, visit, arg);
    if (tables.data_size) {
        sw__relocations(object, &tables, tables.data + tables.relative,
                        tables.data_size - tables.relative, wanted, visit, arg);
    }
}

/* Whether the page of an entry is read-only by now. The kernel is asked to write what is there
 * already: it says no where a store would be a signal. Another thread may be in the middle of
 * loading the object; then the linker still has to write to the page, as it does where the kernel
 * may not be asked and we do not know. */
static bool sw__sealed(void **slot)
{
    void *value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    struct iovec from = {.iov_base = &value, .iov_len = sizeof(value)};
    struct iovec to = {.iov_base = (void *)slot, .iov_len = sizeof(value)};
    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0 && errno == EFAULT;
}

bool sw__plt_store(const struct sw__plt_entry *entry, void *value)
{
    if (!entry->relro) {
        __atomic_store_n(entry->slot, value, __ATOMIC_RELEASE);
        return true;
    }
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)entry->slot & ~(size - 1));
    const bool sealed = sw__sealed(entry->slot);
    /* Also where it is writable: the linker may be about to seal it. */
    if (mprotect(page, size, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(entry->slot, value, __ATOMIC_RELEASE);
    if (sealed) {
        (void)mprotect(page, size, PROT_READ);
    }
    return true;
}

#else

bool sw__plt_supported(void)
{
    return false;
}

void sw__plt_object(const struct dl_phdr_info *object, sw__plt_wanted wanted,
                    sw__plt_visit visit, void *arg)
{
    (void)object, (void)wanted, (void)visit, (void)arg;
}

bool sw__plt_store(const struct sw__plt_entry *entry, void *value)
{
    (void)entry, (void)value;
    return false;
}

#endif
