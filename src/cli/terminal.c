/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_UNKNOWN 80

unsigned terminal_width(FILE *f) {
    struct winsize w;
    int fd = fileno(f);
    if (fd < 0 || !isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &w) || w.ws_col < 2) return COLUMNS_UNKNOWN - 1;
    return w.ws_col - 1u;
}
