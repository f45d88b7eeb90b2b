/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/errors.h"

#include <errno.h>
#include <linux/fs.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* The block layer turns what the device said into an errno; these are its meanings. */
static const struct { int error; const char *meaning; } device_words[] = {
    {ENODATA, "medium error reported by the device"},
    {EBADE, "reservation conflict: another host holds the device"},
    {ENOLINK, "transport failure: path or link is down"},
    {EREMOTEIO, "the target failed the command"},
    {ETIMEDOUT, "the command timed out"},
    {EILSEQ, "protection information did not match"},
    {ENOSPC, "beyond the device's end, or a thin device is out of space"},
    {ENODEV, "the device is gone"},
    {ENXIO, "the device is gone"},
    {EINVAL, "offset, length or memory do not fit the device's block size"},
};

static const char *meaning(int error, enum local_object object) {
    if (object == LOCAL_FILE_DIRECT && error == EINVAL)
        return "the file system does not take this as O_DIRECT; direct=no goes through the page cache";
    if (object != LOCAL_DEVICE) return NULL;
    for (size_t i = 0; i < sizeof device_words / sizeof *device_words; i++)
        if (device_words[i].error == error) return device_words[i].meaning;
    return NULL;
}

uint16_t local_kind(struct kinds *kinds, int error, enum local_object object) {
    char number[32], text[240];
    const char *name = strerrorname_np(error), *words = strerrordesc_np(error), *more = meaning(error, object);
    if (!name) {
        snprintf(number, sizeof number, "errno %d", error);
        name = number;
    }
    snprintf(text, sizeof text, "%s%s%s%s", words ? words : "unknown error", more ? " (" : "", more ? more : "",
             more ? ")" : "");
    return (uint16_t)kinds_note(kinds, name, text);
}

bool local_is_lost(int error) {
    return error == ENODEV || error == ENXIO;
}

bool local_gone(int fd, enum local_object object) {
    uint64_t size;
    return object == LOCAL_DEVICE && (ioctl(fd, BLKGETSIZE64, &size) < 0 || !size);
}
