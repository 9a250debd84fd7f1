/* `wlb check-links`, from the options to the exit code. */
#ifndef CHECKS_LINKS_CHECK_LINKS_H
#define CHECKS_LINKS_CHECK_LINKS_H

#include "common/command.h"

extern const struct wlb_command wlb_command_check_links;

#endif
