/* What the victims share. A victim does known work, tells its driver through a page how far it has
 * come, prints a result that does not depend on being recorded, and exits with 7. */
#ifndef CRASH_VICTIM_H
#define CRASH_VICTIM_H

#include "page.h"
#include <stddef.h>
#include <stepwatch/record.h>

#define CODE 7

extern struct page *page;

/* Work of a section, and a number that depends on all of it. */
uint64_t work(uint64_t seed, unsigned rounds);
/* One section: begins, works, ends, and counts itself in slot `slot`. */
uint64_t one(sw_section *section, unsigned slot, uint64_t seed);
/* `count` sections. */
uint64_t many(sw_section *section, unsigned slot, unsigned count);
/* Counts one record that was just made. */
void count_record(unsigned slot);
/* Tells the driver that the moment has come, and waits for its answer. */
void meet_driver(void);
void tell_ready(void);
void sleep_us(unsigned microseconds);
/* Prints the result. */
void print_result(uint64_t value);
/* Number of threads of this process. */
unsigned count_threads(void);

/* Commands: each returns the exit code. */
int victim_spin(int argc, char **argv);
int victim_rows(int argc, char **argv);
int victim_count(int argc, char **argv);
int victim_exit(int argc, char **argv);
int victim_fork(int argc, char **argv);
int victim_threads(int argc, char **argv);
int victim_files(int argc, char **argv);
int victim_bus(int argc, char **argv);
int victim_signal(int argc, char **argv);
int victim_restart(int argc, char **argv);
int victim_plugin(int argc, char **argv);

#endif
