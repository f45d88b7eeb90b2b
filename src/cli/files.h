/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nrfiles=N: one URL that stands for N members, PATH.0 to PATH.N-1, each as if it had been written. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "base/url.h"
#include "target/target.h"

/* What the member's configuration says: 1 where it has no such key. */
unsigned files_wanted(const struct member *m);
/* Makes the URL that of file `number`: in its path, and in its text, which loses the key. */
int files_rename(struct url *url, unsigned number, struct err *err);

#endif
