package module

import (
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// repeatErrorsOnStderr writes k6's errors to stderr too when its log goes to a file (--log-output file=…), so that the
// lab and the user see why k6 stopped.
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
