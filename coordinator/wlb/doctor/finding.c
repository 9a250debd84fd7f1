#include "coordinator/wlb/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "libwlb/wlb.h"

void wlb_doctor_note(struct wlb_doctor *doctor, enum wlb_finding finding, const char *what, const char *remedy,
                     const char *format, ...)
{
	static const char *const words[] = {"ok", "info", "warn", "FAIL"};
	char text[1024];
	va_list args;
	va_start(args, format);
	wlb_text_vformat(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(doctor->findings, json_pack("{s:s, s:s, s:s, s:s}", "check", what, "finding",
	                                                  words[finding], "detail", text, "remedy", remedy));
	doctor->failed = doctor->failed || finding == WLB_FINDING_FAIL;
}
