/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/device_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

/* '0' stands for digits, 'a' for letters; a partition's digits may follow. */
static const char *const kernel_names[] = {"sda", "vda", "xvda", "hda", "nvme0n0", "dm-0", "loop0", "md0", "nbd0",
                                           "nvme0n0p0", "nbd0p0", "loop0p0", "md0p0", "pmem0", "mmcblk0", "zram0",
                                           NULL};

static bool is_like(const char *word, const char *shape) {
    bool letters = false;
    for (; *shape; shape++) {
        bool end = !shape[1];
        if (*shape == '0') {
            if (!isdigit((unsigned char)*word)) return false;
            while (isdigit((unsigned char)*word)) word++;
        } else if (*shape == 'a' && end) {
            size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");
            if (n == 0 || n > 3) return false;
            word += n;
            letters = true;
        } else if (*word++ != *shape) {
            return false;
        }
    }
    while (letters && isdigit((unsigned char)*word)) word++;
    return !*word;
}

static bool is_block(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

const char *device_word(const char *word, char *buf, size_t len) {
    char name[128];
    if (!*word || strlen(word) >= sizeof name || strpbrk(word, "/:=@?&")) return NULL;
    text_safe(name, sizeof name, word, strlen(word));
    snprintf(buf, len, "/dev/mapper/%s", name);
    if (is_block(buf) || is_like(word, "mpatha")) return buf;
    snprintf(buf, len, "/dev/%s", name);
    if (is_block(buf)) return buf;
    for (const char *const *k = kernel_names; *k; k++)
        if (is_like(word, *k)) return buf;
    return NULL;
}
