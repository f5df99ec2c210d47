// What the pages use of the charts' library, which is vendored as one script. Options and events are the library's own.

interface Chart {
  group: string;
  setOption(option: object, notMerge?: boolean): void;
  getOption(): any;
  resize(): void;
  dispose(): void;
  dispatchAction(action: object, how?: object): void;
  convertFromPixel(finder: object, x: number): number;
  convertToPixel(finder: object, value: number): number;
  getWidth(): number;
  on(event: string, handler: (event: any) => void): void;
  getZr(): { on(event: string, handler: (event: any) => void): void };
}

declare const echarts: {
  init(element: Element, theme: null, options: object): Chart;
  getInstanceByDom(element: Element): Chart | undefined;
  connect(group: string): void;
};
