/* Whether a tensor is made of a list of Python's, told from the source. */
#ifndef SW_ANALYZE_SOURCE_LISTS_H
#define SW_ANALYZE_SOURCE_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the statement that begins at `line`, of the function that begins at `first`, has `torch.tensor([… for …])`, `as_tensor(list(…))`,
 * `FloatTensor(rows)` where the function has `rows = [` or `rows.append(`, or the like. Such a call goes through the elements
 * one by one, also of arrays in the list. */
bool sw__source_tensor_of_list(const char *text, size_t length, uint32_t first,
                               uint32_t line);

#endif
