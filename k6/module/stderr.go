package module

import (
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// repeatErrorsOnStderr sees to it that k6's errors stand on stderr too when its log goes to a file (--log-output file=…):
// whoever starts k6 must read why it stopped.
func repeatErrorsOnStderr(logger logrus.FieldLogger) {
	target, ok := logger.(*logrus.Logger)
	if ok && target.Out == io.Discard {
		target.AddHook(stderrHook{})
	}
}

type stderrHook struct{}

func (stderrHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel}
}

func (stderrHook) Fire(entry *logrus.Entry) error {
	_, err := io.WriteString(os.Stderr, "k6: "+entry.Message+"\n")
	return err
}
