/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of the running kernel (one line in sysfs each) that are changed for the length of a measurement and put back
 * afterwards, also if this process is killed: before a value is changed, a note with the old one is on disk, and who
 * starts next restores what dead processes left. A reboot forgets such values, and so may the notes: they lie in /run.
 * The note's name follows from the setting: two processes never change the same one. Control path; may block. */
#ifndef BACKENDS_LOCAL_NOTES_H
#define BACKENDS_LOCAL_NOTES_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

#define NOTES_FOLDER "/run/samedisk"

struct notes_where {
    const char *folder;     /* made where it does not exist, for root only */
    const char *sys, *proc; /* "/sys", "/proc" */
};

struct setting {            /* zeroed: nothing was changed */
    bool changed;
    char path[PATH_MAX], note[PATH_MAX];
    char old[64];
};

/* Writes `value` to the file `path` below where->sys. A value that is in force already is left alone. Errors
 * (STATUS_TARGET): no such setting, no right, another process that lives has changed it; nothing is changed then. */
int notes_change(const struct notes_where *where, const char *path, const char *value, struct setting *s,
                 struct err *err);
void notes_put_back(struct setting *s);
/* Restores what processes that are gone have left, and tells each case in words. */
void notes_recover(const struct notes_where *where, void (*say)(void *arg, const char *line), void *arg);

#endif
