/* Telling a signal to us alone from one to our whole process group.
 *
 * The program is in our group, so what somebody sends to the group it has got already; passing our copy on would make it
 * two. The kernel does not say which it was. A witness is a process of the group that only lets signals lie: what it has
 * was sent to all. */
#ifndef SW_CLI_WITNESS_H
#define SW_CLI_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Begins one where programs send signals to groups: where we lead ours and no terminal does it. 0: none is needed. The
 * caller has blocked the signals in question. */
pid_t witness_begin(void);
void witness_end(pid_t witness);
/* Whether the group got this signal too. The witness may be another one afterwards. */
bool witness_has(pid_t *witness, int number);

#endif
