module connlab/collector

go 1.25.0
