/* Any record of the kernel's log: none, or a line within it and, where that tells of an Xid error, numbers that the
 * driver can mean. */
#include <stdlib.h>
#include <string.h>

#include "checks/node/kernel_log.h"
#include "checks/node/xid_list.h"
#include "tests/fuzz/scratch.h"

static void check_line(const char *line)
{
	struct wlb_xid_list list = {0};
	struct wlb_xid xid;
	(void)wlb_xid_is_driver_start(line);
	if (!wlb_xid_parse(line, &xid))
		return;
	must(xid.number > 0 && xid.number <= 9999);
	must(xid.gpu.bus <= 0xff && xid.gpu.device <= 0xff);
	must(strncmp(line, "NVRM: Xid (PCI:", 15) == 0);
	must(xid.meaning != WLB_XID_FAULT || wlb_xid_fault(xid.number) != NULL);
	wlb_xid_list_add(&list, &xid, 1.0);
	must(list.count == 1 && list.gpus[0].newest.number == xid.number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_kernel_record record;
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	if (wlb_kernel_record_parse(text, bytes, &record)) {
		must(record.at_s >= 0.0 && record.at_s <= 1e12); /* 18 digits of microseconds, rounded */
		must(record.text > text && record.text + strlen(record.text) <= text + bytes);
		must(strchr(record.text, '\n') == NULL);
		check_line(record.text);
	}
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	check_line(text);
	free(text);
	return 0;
}
