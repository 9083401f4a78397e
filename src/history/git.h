/* The state of a git work tree from its files; no git is started. */
#ifndef SW_HISTORY_GIT_H
#define SW_HISTORY_GIT_H

/* Whether tracked files were changed since git last looked: 1 when one is gone or has another size, -1 when that cannot be told
 * within a few milliseconds. Never 0: that the index is what was committed would take reading objects. */
int sw__git_dirty(const char *git_folder, const char *work_tree, size_t hash_bytes);

#endif
