/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the file backend: what its two halves (fileopen.c: control path, file.c: table and data path) share. */
#ifndef BACKENDS_LOCAL_FILE_H
#define BACKENDS_LOCAL_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/local/errors.h"
#include "backends/local/kernel.h"

enum file_engine { FILE_ENGINE_AUTO, FILE_ENGINE_LIBAIO, FILE_ENGINE_THREADS, FILE_ENGINE_IO_URING };
enum file_direct { FILE_DIRECT_AUTO, FILE_DIRECT_YES, FILE_DIRECT_NO };

struct file_conf {
    char *path;
    int engine, direct;
    uint64_t nrfiles;          /* that the path stands for: the command line makes a configuration of each */
    uint64_t delay;
    struct kernel_conf kernel;
};

struct handle {
    int fd;                    /* -1: the file does not exist */
    int dir;                   /* its folder, O_PATH */
    char *name;                /* within dir */
    dev_t dev;                 /* of the file, or of the folder where the file does not exist */
    ino_t ino;
    bool created;              /* by this handle, so it may remove it */
    bool direct, threads, uring; /* in force */
    bool plain_stable, dsync_stable;
    bool local_device;         /* dev is a block device with statistics */
    uint64_t allocated, size;
    struct kernel_conf asked;
    struct kernel kernel;
    struct lock *lock;         /* NULL: none */
};

int file_open(const struct open_how *how, struct handle **out, struct facts *f, struct err *err);
void file_close(struct handle *h);
int file_remove(struct handle *h, struct err *err);

#endif
