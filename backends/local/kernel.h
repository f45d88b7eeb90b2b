/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the access keys kernel_readahead and nomerges change in the kernel, for files and block devices. */
#ifndef BACKENDS_LOCAL_KERNEL_H
#define BACKENDS_LOCAL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/local/notes.h"
#include "base/kv.h"
#include "option/option.h"

struct kernel_conf {
    uint64_t readahead;       /* bytes */
    bool readahead_given;
    int nomerges;             /* enum kernel_nomerges */
};

enum kernel_nomerges { KERNEL_NOMERGES_ASIS, KERNEL_NOMERGES_0, KERNEL_NOMERGES_1, KERNEL_NOMERGES_2 };

struct kernel {               /* what is in force; zeroed: nothing */
    struct setting readahead, nomerges;
};

extern const char *const kernel_nomerges_names[];
int kernel_parse_readahead(const char *value, void *field, void *conf, struct err *err);
int kernel_show_readahead(const void *field, const void *conf, char *buf, size_t len);

/* Entries of an option table, for a configuration that has a struct kernel_conf as one of its fields. */
#define KERNEL_OPTIONS(conf_type, conf_field)                                                                          \
    {.name = "kernel_readahead", .type = OPTION_CUSTOM, .offset = offsetof(conf_type, conf_field), .value = "SIZE",    \
     .help = "the kernel's readahead for this device or mount, while it is measured", .parse = kernel_parse_readahead, \
     .show = kernel_show_readahead},                                                                                   \
    {.name = "nomerges", .type = OPTION_ENUM, .offset = offsetof(conf_type, conf_field.nomerges),                      \
     .names = kernel_nomerges_names, .def = "asis", .value = "asis|0|1|2",                                             \
     .help = "whether the block layer may merge requests, while it is measured"}

/* The file in sysfs that holds the readahead, in KiB, of reads from this device or file system through the page cache.
 * False: there is none. */
bool kernel_readahead_path(const char *sys, dev_t dev, char *path, size_t len);
/* Puts the settings in force and into `facts`. Errors: STATUS_TARGET; nothing is changed then. */
int kernel_adjust(struct kernel *k, const struct kernel_conf *conf, const struct notes_where *where, dev_t dev,
                  struct kv *facts, struct err *err);
void kernel_put_back(struct kernel *k);

#endif
