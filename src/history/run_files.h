/* What the files of a run directory say about the run. */
#ifndef SW_HISTORY_RUN_FILES_H
#define SW_HISTORY_RUN_FILES_H

#include <stepwatch/history.h>

#include "base/memory.h"

/* All of it, from run.json, report.json and, where there is no report, the traces. Texts lie in the arena. `folder` is where the run
 * directory `name` lies. SW_ENOTFOUND: it holds no run. SW_ESTATE: the run still goes on. SW_EDISABLED: whoever started it
 * wanted it in no history. */
int sw__run_read(sw_history_run *out, const char *folder, const char *name,
                 sw__arena *arena, sw_error_info *info);
/* Whether a folder holds a run, as far as the names of its files say. */
bool sw__run_is_there(const char *directory);

bool sw__run_has_report(const char *directory);

/* A run of which nothing is known. */
void sw__run_unknown(sw_history_run *out);

/* run.json: who started what, when, where, how it ended. */
int sw__run_json_read(sw_history_run *out, const char *directory, sw__arena *arena);
/* report.json, as text: what was found. Facts that are known already stay. */
int sw__run_report_read(sw_history_run *out, const char *text, size_t length,
                        sw__arena *arena);

/* What is needed to find the same program again. `words` are the command without secrets; `program` NULL: it is found in
 * them, and its path below `folder`, where the program was started. */
void sw__run_identify(sw_history_run *out, const char *const *words, size_t count,
                      const char *program, size_t operand, const char *folder,
                      sw__arena *arena);

#endif
