/* What this process may use of the machine, and what it uses. Every call reads /proc and the control groups anew; what cannot be
 * known is UINT64_MAX. */
#ifndef STEPWATCH_HOST_H
#define STEPWATCH_HOST_H

#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Processors that this process may use, in hundredths of one: affinity and quota, whichever is less. */
SW_API unsigned sw_host_cpus_percent(void);
/* Bytes that this process could still take before something gives way: what is available on the machine, in its control
 * groups and in its address space, whichever is least. */
SW_API uint64_t sw_host_memory_available(void);
/* Bytes of a process that are in memory, as the kernel counts them; pid 0: this one. */
SW_API uint64_t sw_host_resident(int64_t pid);
/* The most that this process ever had in memory. */
SW_API uint64_t sw_host_resident_peak(void);
/* Bytes of this process that were swapped out; UINT64_MAX: unknown. */
SW_API uint64_t sw_host_swapped(void);

/* What this process has read and written since it began, as the kernel counts it. */
typedef struct sw_host_io {
    uint64_t read_bytes,
        written_bytes; /* that calls asked for, pipes and sockets among them */
    uint64_t read_calls, write_calls;
    uint64_t device_read_bytes, device_written_bytes;
} sw_host_io;
SW_API void sw_host_io_read(sw_host_io *io);

#ifdef __cplusplus
}
#endif
#endif
