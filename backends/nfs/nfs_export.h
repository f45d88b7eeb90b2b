/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where in a URL's path the export ends and the file begins. Pure. */
#ifndef BACKENDS_NFS_NFS_EXPORT_H
#define BACKENDS_NFS_NFS_EXPORT_H

#include <stddef.h>

#include "base/err.h"

#define NFS_PATH_MAX 4096
#define NFS_EXPORTS_MAX 4096

struct nfsbe_exports {
    char **dir; /* owned; as the server wrote them */
    size_t n;
};

/* "/a//b/./c" -> "/a/b/c". Errors (USAGE): empty, "..", too long, a component above 255 bytes; a '/' at the end where a
 * file is wanted. */
int nfsbe_path_normal(const char *in, char out[NFS_PATH_MAX], struct err *err);

/* The longest of the exports that `path` (normal) lies in, whole components only. Its index, or -1; *rest is then the
 * part of `path` below it, without its first '/'. An export that is the whole path is a match with an empty rest; what
 * does not begin with '/' is none. */
int nfsbe_export_match(const struct nfsbe_exports *exports, const char *path, const char **rest);

int nfsbe_exports_add(struct nfsbe_exports *exports, const char *dir); /* once; -1: no memory, or too many */
void nfsbe_exports_free(struct nfsbe_exports *exports);
/* "/vol1, /vol2 and 12 more", made safe to print. */
const char *nfsbe_exports_words(const struct nfsbe_exports *exports, char *buf, size_t len);

#endif
